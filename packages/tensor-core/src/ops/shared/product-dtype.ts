import { type DType, type HalfDType, isHalf } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import { cast } from "../../functions/elementwise.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { formatSpec, type TensorSpec } from "../../shape.ts";

/** Storage dtype of a product of f16 or bf16 operands; sums are f32 in any case. Default: the operands' dtype. */
export type ProductParams = { readonly resultDtype?: "f32" | HalfDType };

/** Dtype of a product: operands are all f32, all f16 or all bf16. @throws ShapeError for others. */
export const productDtype = (op: string, operands: readonly TensorSpec[], { resultDtype }: ProductParams): DType => {
  const [first] = operands;
  if (operands.some(({ dtype }) => dtype !== first!.dtype) || (first!.dtype !== "f32" && !isHalf(first!.dtype)))
    throw new ShapeError(
      op,
      `operands ${operands.map(formatSpec).join(" and ")} must be all f32, all f16 or all bf16; cast them first`,
    );
  return resultDtype ?? first!.dtype;
};

/** Cast the cotangent of a product for use as an operand of its gradient products. */
export const asOperand = (cotangent: Tensor, { dtype }: Tensor): Tensor =>
  cotangent.dtype === dtype ? cotangent : cast(cotangent, dtype);
