import { type Graph, GraphBuilder, type Node, type Origin, type ValueRef } from "../../graph/graph.ts";
import { optimizationBarrierOperator } from "../../ops/optimization-barrier.ts";
import { roleOf } from "../../ops/role.ts";
import { isCollective } from "../collective-order.ts";

/**
 * Value of a backward node that a barrier may wait for: its result, or for a barrier its last value, which is the
 * cotangent that it waited for.
 */
const cotangentOf = (node: Node): ValueRef | undefined => {
  if (roleOf(node) === "barrier") return { node: node.id, output: node.specs.length - 1 };
  const computes = !isCollective(node) && roleOf(node) === undefined && node.inputs.length > 0;
  return computes ? { node: node.id, output: 0 } : undefined;
};

/**
 * Append an optimization barrier around `inputs` that also waits for a cotangent, so that no schedule moves the readers
 * of its results into the forward pass, where they would keep memory alive.
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

/** Rewriting of the values that backward nodes read. */
export interface BackwardReads {
  /** Called after another node has been copied. */
  readonly onCopy?: (node: Node) => void;
  /**
   * Values that a backward node reads in the new graph, per input; nodes may be appended before it.
   *
   * @param lastCotangent latest value that the backward pass has computed, for a barrier to wait for.
   */
  readonly readsOf: (node: Node, lastCotangent: ValueRef | undefined) => readonly ValueRef[];
}

/** Rebuild a graph with other inputs of its backward nodes. */
export const rewriteBackwardReads = (graph: Graph, readsWith: (builder: GraphBuilder) => BackwardReads): Graph => {
  const builder = new GraphBuilder();
  const { onCopy, readsOf } = readsWith(builder);
  let lastCotangent: ValueRef | undefined;
  for (const node of graph.nodes) {
    if (node.phase !== "backward") {
      builder.copy(node);
      onCopy?.(node);
      continue;
    }
    const id = builder.add({ ...node, inputs: readsOf(node, lastCotangent) });
    node.specs.forEach((_, output) => builder.map({ node: node.id, output }, { node: id, output }));
    lastCotangent = cotangentOf({ ...node, id }) ?? lastCotangent;
  }
  return builder.finish(graph);
};
