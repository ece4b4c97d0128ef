import { type DType, type HalfDType, isHalf } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import { cast } from "../../functions/elementwise.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { formatSpec, type TensorSpec } from "../../shape.ts";

/**
 * Parameters of a matrix product or convolution. `resultDtype`: dtype of the result for f16 or bf16 operands, default:
 * the operands' dtype. Sums are always f32.
 */
export type ProductParams = { readonly resultDtype?: "f32" | HalfDType };

/**
 * Returns the result dtype of a matrix product or convolution. Throws ShapeError unless the operands are all f32, all
 * f16 or all bf16.
 */
export const productDtype = (op: string, operands: readonly TensorSpec[], { resultDtype }: ProductParams): DType => {
  const [first] = operands;
  if (operands.some(({ dtype }) => dtype !== first!.dtype) || (first!.dtype !== "f32" && !isHalf(first!.dtype)))
    throw new ShapeError(
      op,
      `operands ${operands.map(formatSpec).join(" and ")} must be all f32, all f16 or all bf16; cast them first`,
    );
  return resultDtype ?? first!.dtype;
};

/**
 * Casts the cotangent of a matrix product or convolution to the operand's dtype, so that gradients can be computed by
 * further products.
 */
export const asOperand = (cotangent: Tensor, { dtype }: Tensor): Tensor =>
  cotangent.dtype === dtype ? cotangent : cast(cotangent, dtype);
