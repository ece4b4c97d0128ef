import type { CollectiveParams } from "../graph/collective-params.ts";
import { ArgumentError } from "../errors.ts";
import { allReduce } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective, reduceRanks, reducible } from "./shared/collective.ts";

export type AllReduceParams = CollectiveParams & {
  readonly reduction: string;
};

/**
 * All-reduce: each rank receives the sum (or maximum, minimum) of the operands of all ranks. Adjoint of the sum: an
 * all-reduce sum.
 */
export const allReduceOperator: Operator = collective<AllReduceParams>({
  name: "all-reduce",
  isReplicated: true,
  mayOverwrite: () => true,
  dtypes: reducible,
  result: (input) => input,
  flops: (input, { axisSize }) => (elementCount(input.shape) * (axisSize - 1)) / axisSize,
  world: (ranks, { reduction }, output) => {
    const data = reduceRanks(ranks, reduction, 0, elementCount(output.shape));
    return ranks.map(() => data);
  },
  vjp: ({ cotangents: [g], params: { axis, reduction, priority } }) => {
    if (reduction !== "sum")
      throw new ArgumentError(
        `all-reduce has no gradient rule for the reduction "${reduction}", only for "sum"; wrap its input in stopGradient() if none should flow`,
      );
    return [allReduce(g!, axis, "sum", { priority })];
  },
});
