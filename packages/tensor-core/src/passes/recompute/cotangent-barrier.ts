import { type Graph, GraphBuilder, type Node, type Origin, type ValueRef } from "../../graph/graph.ts";
import { optimizationBarrierOperator } from "../../ops/optimization-barrier.ts";
import { roleOf } from "../../ops/role.ts";
import { isCollective } from "../collective-order.ts";

/**
 * Returns a cotangent for which a barrier can wait. For a node that is itself a barrier: its last value, which is the
 * cotangent for which that barrier waits. For other nodes that compute: their first result. Undefined for collectives
 * and constants, for example.
 */
const cotangentOf = (node: Node): ValueRef | undefined => {
  if (roleOf(node) === "barrier") return { node: node.id, output: node.specs.length - 1 };
  const computes = !isCollective(node) && roleOf(node) === undefined && node.inputs.length > 0;
  return computes ? { node: node.id, output: 0 } : undefined;
};

/**
 * Appends an optimization barrier around `inputs` that also waits for a cotangent, so that no schedule moves readers of
 * the barrier into the forward pass, where their results would occupy memory.
 *
 * @returns Id of the barrier node. The first results of the barrier are the inputs, in order.
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

/** Hooks for rebuilding a graph so that its backward nodes read other values. */
export interface BackwardReads {
  /** Called after each node outside the backward pass has been copied. */
  readonly onCopy?: (node: Node) => void;
  /**
   * Returns the value in the new graph for each input of a backward node. May append nodes, which then precede the
   * backward node.
   *
   * @param lastCotangent Latest value of the backward pass for which a barrier can wait; undefined before the first
   * such value.
   */
  readonly readsOf: (node: Node, lastCotangent: ValueRef | undefined) => readonly ValueRef[];
}

/** Rebuilds a graph, replacing the inputs of its backward nodes. */
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
