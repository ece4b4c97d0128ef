import { ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec } from "../shape.ts";
import { equal, sqrt, square, where } from "./elementwise.ts";
import { type ReduceOptions, sum } from "./reduce.ts";

/**
 * Computes the Euclidean norm `√Σ x²` over `dims`, f32. The gradient is `x / norm`, or 0 if the norm is 0, as in
 * PyTorch.
 *
 * Squares are not scaled: entries above 1.8e19 give Infinity, entries below 1e-23 are treated as 0.
 *
 * @throws ShapeError if the dtype is not f32.
 * Cost: one read of `x`, 2 flops per entry.
 * @example
 * ```ts
 * const result = await evaluate((x: Tensor) => norm(x), referenceBackend())(NdArray.from([3, 4]));
 * console.log(result.toNumbers()); // [5]
 * ```
 */
export const norm = (x: Tensor, options: ReduceOptions = {}): Tensor => {
  const reduced = checkOptions("norm(x)", options, { dims: true, keepDims: true });
  requireOperands("norm", [x]);
  if (x.dtype !== "f32")
    throw new ShapeError("norm", `${formatSpec(x)} is not supported, norm takes f32; cast the operand first`);
  const squares = sum(square(x), reduced);
  // Replace 0 before the square root, because the derivative of the square root is infinite at 0.
  const isZero = equal(squares, 0);
  return where(isZero, 0, sqrt(where(isZero, 1, squares)));
};
