import type { CollectiveParams } from "../graph/collective-params.ts";
import { broadcastFromRoot } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective, reduceRanks, reducible } from "./shared/collective.ts";

export type ReduceParams = CollectiveParams & {
  readonly root: number;
};

/**
 * Reduce: rank `root` receives the sum of the operands of all ranks; other ranks return zeros. Adjoint: a broadcast of
 * the root's cotangent to all ranks. Other ranks return zeros, not unspecified values, because `reduce` is the adjoint
 * of `broadcast`.
 */
export const reduceOperator: Operator = collective<ReduceParams>({
  name: "reduce",
  // All ranks must run the node, although only the root uses the result.
  hasEffect: () => true,
  mayOverwrite: () => true,
  dtypes: reducible,
  result: (input) => input,
  flops: (input, { axisSize }) => (elementCount(input.shape) * (axisSize - 1)) / axisSize,
  world: (ranks, { root }, output) => {
    const count = elementCount(output.shape);
    const sum = reduceRanks(ranks, "sum", 0, count);
    return ranks.map((_, rank) => (rank === root ? sum : new Float64Array(count)));
  },
  vjp: ({ cotangents: [g], params: { axis, root, priority } }) => [broadcastFromRoot(g!, axis, root, { priority })],
});
