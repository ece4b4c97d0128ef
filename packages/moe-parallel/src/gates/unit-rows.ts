import { greater, multiply, rsqrt, square, sum, type Tensor, where } from "@skein/tensor-core";

/** Rows divided by their length, along the last dimension; rows of zeros, and nearly zeros, stay what they are. */
export const unitRows = (x: Tensor): Tensor => {
  const squared = sum(square(x), { dims: -1, keepDims: true });
  // Not a small bound in place of 1: a row of zeros, such as padding, would get gradients as large as 1 / bound.
  return multiply(x, rsqrt(where(greater(squared, 1e-24), squared, 1)));
};
