import { divide, equal, maximum, negate, reduceMax, reduceMin, sqrt, square, sum, type Tensor, where } from "@skein/tensor-core";

export interface RelativeNorm {
  /** max|x| of each row, `[..., 1]`. */
  readonly greatest: Tensor;
  /** x / max|x|, within ±1; 0 where all are 0. */
  readonly relative: Tensor;
  /** ‖x‖₂ / max|x|, `[..., 1]`: from 1 to √n; 0 where all are 0. */
  readonly norm: Tensor;
}

/**
 * Measure each row (last dimension) by its greatest magnitude, so that no square overflows or vanishes. A NaN or an infinity makes the whole
 * row NaN.
 */
export const relativeNorm = (x: Tensor): RelativeNorm => {
  const along = { dims: -1, keepDims: true };
  // Rows may be empty: their greatest value is −∞ then.
  const greatest = maximum(maximum(reduceMax(x, along), negate(reduceMin(x, along))), 0);
  const relative = divide(x, where(equal(greatest, 0), 1, greatest));
  return { greatest, relative, norm: sqrt(sum(square(relative), along)) };
};
