import { absolute, divide, maximum, multiply, reduceMax, sqrt, square, sum, type Tensor } from "@skein/tensor-core";

export interface RelativeNorm {
  /** max|x| of each row, `[..., 1]`, and at least 2⁻¹²⁶. */
  readonly greatest: Tensor;
  /** x / greatest, within ±1. */
  readonly relative: Tensor;
  /** ‖x‖₂ / greatest, `[..., 1]`: at most √n; 0 where all are 0. */
  readonly norm: Tensor;
}

/** The least f32 that has all of its digits, so that one divided by it is finite. */
const leastScale = 2 ** -126;

/**
 * Measure each row (last dimension) by its greatest magnitude, so that no square overflows or vanishes. A NaN or an
 * infinity makes the whole row NaN.
 */
export const relativeNorm = (x: Tensor): RelativeNorm => {
  const along = { dims: -1, keepDims: true };
  // Rows may be empty: their greatest magnitude is −∞ before it is bounded.
  const greatest = maximum(reduceMax(absolute(x), along), leastScale);
  // One division for a row: a product costs less than a division for each entry.
  const relative = multiply(x, divide(1, greatest));
  return { greatest, relative, norm: sqrt(sum(square(relative), along)) };
};
