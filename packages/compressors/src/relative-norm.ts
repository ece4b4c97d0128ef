import { absolute, divide, maximum, multiply, reduceMax, sqrt, square, sum, type Tensor } from "@skein/tensor-core";

export interface RelativeNorm {
  /** Maximum of |x| per row, at least 2⁻¹²⁶, `[..., 1]`. */
  readonly greatest: Tensor;
  /** Entries relative to the greatest magnitude of their row, `x / greatest`, within ±1. */
  readonly relative: Tensor;
  /** ‖x‖₂ / greatest, `[..., 1]`: at most √n; 0 if all entries are 0. */
  readonly norm: Tensor;
}

/** Smallest normal f32, so that its reciprocal is finite. */
const minScale = 2 ** -126;

/**
 * Scales each row (last dimension) by its greatest magnitude, so that squares neither overflow nor underflow. A NaN or
 * an infinity makes all values of its row NaN.
 */
export const relativeNorm = (x: Tensor): RelativeNorm => {
  const along = { dims: -1, keepDims: true };
  // The greatest magnitude of an empty row would be −∞ without the lower bound.
  const greatest = maximum(reduceMax(absolute(x), along), minScale);
  // One division per row, because multiplying entries is cheaper than dividing them.
  const relative = multiply(x, divide(1, greatest));
  return { greatest, relative, norm: sqrt(sum(square(relative), along)) };
};
