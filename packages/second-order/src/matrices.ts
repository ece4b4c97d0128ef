import { reshape, type Shape, type Tensor } from "@skein/tensor-core";

/** Whether a tensor is read as a matrix: dense weights [inputs, outputs], kernels [height, width, inputs, outputs]. */
export const isMatrix = ({ shape }: { readonly shape: Shape }): boolean => shape.length >= 2;

/** A weight as a matrix [inputs, outputs]: all dimensions but the last one together. */
export const asMatrix = (x: Tensor): Tensor => (x.rank === 2 ? x : reshape(x, [-1, x.shape.at(-1)!]));

export const likeBefore = (matrix: Tensor, before: Tensor): Tensor =>
  before.rank === 2 ? matrix : reshape(matrix, before.shape);
