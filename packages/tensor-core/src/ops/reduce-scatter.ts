import type { CollectiveParams } from "../graph/collective-params.ts";
import { ArgumentError } from "../errors.ts";
import { allGather } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { chunkRows, collective, reduceRanks, reducible } from "./shared/collective.ts";

export type ReduceScatterParams = CollectiveParams & {
  readonly reduction: string;
};

/**
 * Reduce-scatter, `[P·n, …] → [n, …]`: rank r receives chunk r of the reduction over all ranks. Adjoint: all-gather.
 */
export const reduceScatterOperator: Operator = collective<ReduceScatterParams>({
  name: "reduce-scatter",
  dtypes: reducible,
  result: (input, params) => ({
    dtype: input.dtype,
    shape: [chunkRows("reduce-scatter", input, params), ...input.shape.slice(1)],
  }),
  flops: (input, { axisSize }) => (elementCount(input.shape) * (axisSize - 1)) / axisSize,
  world: (ranks, { reduction }, output) => {
    const chunk = elementCount(output.shape);
    return ranks.map((_, rank) => reduceRanks(ranks, reduction, rank * chunk, (rank + 1) * chunk));
  },
  vjp: ({ cotangents: [g], params: { axis, reduction, priority } }) => {
    if (reduction !== "sum")
      throw new ArgumentError(
        `reduce-scatter has no gradient rule for the reduction "${reduction}", only for "sum"; wrap its input in stopGradient() if none should flow`,
      );
    return [allGather(g!, axis, { priority })];
  },
});
