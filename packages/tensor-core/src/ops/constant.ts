import type { DType } from "../dtype.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, requireNumberOf } from "../shape.ts";

export type ConstantParams = {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly value: number | string;
};

/**
 * Tensor of `shape` filled with `value` (`-0`, `NaN` and infinities are strings, see `encodeNumber`). Fusion merges
 * constants into the nodes that read them.
 */
export const constantOperator: Operator = defineOperator<ConstantParams>({
  name: "constant",
  constantValue: ({ value }) => value,
  infer: (_, { dtype, shape, value }) => {
    requireNumberOf("constant", Number(value), dtype);
    return [{ dtype, shape }];
  },
  cost: (_, outputs) => ({ flops: 0, bytesRead: 0, bytesWritten: byteLength(outputs[0]!) }),
  reference: (_, { shape, value }) => [new Float64Array(elementCount(shape)).fill(Number(value))],
  vjp: () => [],
});
