import type { GraphBuilder, Node, Origin, ValueRef } from "../../graph/graph.ts";
import { optimizationBarrierOperator } from "../../ops/optimization-barrier.ts";
import { roleOf } from "../../ops/role.ts";
import { isCollective } from "../collective-order.ts";

/** Whether a backward node computes something that a barrier may wait for. */
export const computesCotangent = (node: Node): boolean =>
  !isCollective(node) && roleOf(node) === undefined && node.inputs.length > 0;

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
