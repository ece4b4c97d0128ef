import { absolute, divide, maximum, multiply, reduceMax, sqrt, square, sum, type Tensor } from "@skein/tensor-core";

export interface RelativeNorm {
  /** max|x| of each row, at least 2⁻¹²⁶, `[..., 1]`. */
  readonly greatest: Tensor;
  /** x / greatest, within ±1. */
  readonly relative: Tensor;
  /** ‖x‖₂ / greatest, `[..., 1]`: at most √n; 0 if all entries are 0. */
  readonly norm: Tensor;
}

/** Smallest normal f32, so that its reciprocal is finite. */
const minScale = 2 ** -126;

/**
 * Scale each row (last dimension) by its greatest magnitude, so that no square overflows or underflows. A NaN or an
 * infinity makes the whole row NaN.
 */
export const relativeNorm = (x: Tensor): RelativeNorm => {
  const along = { dims: -1, keepDims: true };
  // Rows may be empty: their greatest magnitude is −∞ before the lower bound.
  const greatest = maximum(reduceMax(absolute(x), along), minScale);
  // One division per row: a product is cheaper than a division per entry.
  const relative = multiply(x, divide(1, greatest));
  return { greatest, relative, norm: sqrt(sum(square(relative), along)) };
};
