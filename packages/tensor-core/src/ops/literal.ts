import type { DType } from "../dtype.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, requireNumberOf } from "../shape.ts";

export type LiteralParams = {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: readonly (number | string)[];
};

/** Tensor whose values are embedded in the graph; `-0`, `NaN` and infinities are strings, see `encodeNumber`. */
export const literalOperator: Operator = defineOperator<LiteralParams>({
  name: "literal",
  infer: (_, { dtype, shape, values }) => {
    for (const value of values) requireNumberOf("constant", Number(value), dtype);
    return [{ dtype, shape }];
  },
  vjp: () => [],
  cost: (_, [output]) => ({ flops: 0, bytesRead: 0, bytesWritten: byteLength(output!) }),
  reference: (_, { values }) => [Float64Array.from(values, Number)],
});
