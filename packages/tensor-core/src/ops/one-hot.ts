import type { DType } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount } from "../shape.ts";

export type OneHotParams = { readonly depth: number; readonly dtype: DType };

/**
 * One-hot encoding: 1 if the index along the last dimension equals the entry of `indices` (i32), otherwise 0. Indices
 * out of range give a row of zeros.
 */
export const oneHotOperator: Operator = defineOperator<OneHotParams>({
  name: "one-hot",
  infer: ([indices], { depth, dtype }) => {
    if (indices!.dtype !== "i32")
      throw new ShapeError("oneHot", `indices must be i32, got ${indices!.dtype}; cast them first`);
    if (!Number.isInteger(depth) || depth < 0)
      throw new ShapeError("oneHot", `depth ${depth} is not a size; use an integer of at least 0`);
    if (dtype === "f16" || dtype === "bf16")
      throw new ShapeError("oneHot", `dtype ${dtype} is for storage only; use f32 and cast the result`);
    return [{ dtype, shape: [...indices!.shape, depth] }];
  },
  vjp: () => [undefined],
  cost: ([indices], [output]) => ({ flops: 0, bytesRead: byteLength(indices!), bytesWritten: byteLength(output!) }),
  reference: ([indices], { depth }, [output]) => {
    const result = new Float64Array(elementCount(output!.shape));
    indices!.data.forEach((index, row) => {
      if (index >= 0 && index < depth) result[row * depth + index] = 1;
    });
    return [result];
  },
});
