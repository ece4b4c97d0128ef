import { greater, multiply, rsqrt, square, sum, type Tensor, where } from "@skein/tensor-core";

/** Scales rows to length 1, along the last dimension. Rows that are zero, or almost zero, are not changed. */
export const unitRows = (x: Tensor): Tensor => {
  const squared = sum(square(x), { dims: -1, keepDims: true });
  // Divides such rows by 1 instead of a small bound. With a bound, a row of zeros, such as padding, would get gradients
  // as large as 1 / bound.
  return multiply(x, rsqrt(where(greater(squared, 1e-24), squared, 1)));
};
