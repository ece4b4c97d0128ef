import type { CollectiveParams } from "../graph/collective-params.ts";
import { broadcastFromRoot } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective, reduceRanks, reducible } from "./shared/collective.ts";

export type ReduceParams = CollectiveParams & {
  readonly root: number;
};

/**
 * Rank `root` gets the sum of all ranks' operands, the others get zeros. Adjoint: the cotangent of `root` on every
 * rank. `reduce` is also the adjoint of `broadcast`, which is why the other ranks get zeros instead of unspecified
 * values.
 */
export const reduceOperator: Operator = collective<ReduceParams>({
  name: "reduce",
  // The result is unused on all ranks except the root.
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
