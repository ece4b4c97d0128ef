import { type Graph, GraphBuilder, type Node, type Origin, type ValueRef } from "../../graph/graph.ts";
import { optimizationBarrierOperator } from "../../ops/optimization-barrier.ts";
import { roleOf } from "../../ops/role.ts";
import { isCollective } from "../collective-order.ts";

/**
 * What a barrier may wait for of a backward node: what it computes, or of a barrier the last value, which is what that
 * one waited for.
 */
const cotangentOf = (node: Node): ValueRef | undefined => {
  if (roleOf(node) === "barrier") return { node: node.id, output: node.specs.length - 1 };
  const computes = !isCollective(node) && roleOf(node) === undefined && node.inputs.length > 0;
  return computes ? { node: node.id, output: 0 } : undefined;
};

/**
 * Append an optimization barrier around `inputs` that waits for a cotangent too: no schedule then moves what reads its
 * results into the forward pass, where its time would be free but its memory would not.
 *
 * @returns the node; its first results are the inputs, in order.
 */
export const addCotangentBarrier = (
  builder: GraphBuilder,
  inputs: readonly ValueRef[],
  cotangent: ValueRef | undefined,
  origin: Origin,
): number => {
  const all = [...inputs, ...(cotangent === undefined ? [] : [cotangent])];
  const specs = all.map((ref) => builder.nodes[ref.node]!.specs[ref.output]!);
  return builder.add({ op: optimizationBarrierOperator.name, inputs: all, params: {}, specs, ...origin });
};

/** What a rewrite lets backward nodes read. */
export interface BackwardReads {
  /** Called once another node has been copied. */
  readonly copied?: (node: Node) => void;
  /**
   * What a backward node reads in the new graph, per input; nodes may be appended before it.
   *
   * @param lastCotangent the latest value that the backward pass has computed, for a barrier to wait for.
   */
  readonly readsOf: (node: Node, lastCotangent: ValueRef | undefined) => readonly ValueRef[];
}

/** Build a graph anew in which backward nodes read other values than they did. */
export const rewriteBackwardReads = (graph: Graph, readsWith: (builder: GraphBuilder) => BackwardReads): Graph => {
  const builder = new GraphBuilder();
  const { copied, readsOf } = readsWith(builder);
  let lastCotangent: ValueRef | undefined;
  for (const node of graph.nodes) {
    if (node.phase !== "backward") {
      builder.copy(node);
      copied?.(node);
      continue;
    }
    const id = builder.add({ ...node, inputs: readsOf(node, lastCotangent) });
    node.specs.forEach((_, output) => builder.map({ node: node.id, output }, { node: id, output }));
    lastCotangent = cotangentOf({ ...node, id }) ?? lastCotangent;
  }
  return builder.finish(graph);
};
