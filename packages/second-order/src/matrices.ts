import {
  broadcastTo,
  type DecayMask,
  equal,
  full,
  iota,
  multiply,
  reshape,
  type Shape,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";

/** Whether a tensor is read as a matrix: dense weights [inputs, outputs], kernels [height, width, inputs, outputs]. */
export const isMatrix = ({ shape }: { readonly shape: Shape }): boolean => shape.length >= 2;

/** Weights and kernels; no biases and gains of norms. */
export const onlyMatrices: DecayMask = (_, param) => isMatrix(param);

/** A weight as a matrix [inputs, outputs]: all dimensions but the last one together. */
export const asMatrix = (x: Tensor): Tensor => (x.rank === 2 ? x : reshape(x, [-1, x.shape.at(-1)!]));

export const likeBefore = (matrix: Tensor, before: Tensor): Tensor =>
  before.rank === 2 ? matrix : reshape(matrix, before.shape);

/** bool [n, n] */
export const onDiagonal = (n: number): Tensor =>
  equal(iota([n, n], "i32", { dim: 0 }), iota([n, n], "i32", { dim: 1 }));

/** f32 [n, n] */
export const identityMatrix = (n: number): Tensor => where(onDiagonal(n), full([n, n], 1), 0);

/** Entries on the diagonals of [..., n, n], as [..., n]. */
export const diagonalOf = (matrix: Tensor): Tensor =>
  sum(where(broadcastTo(onDiagonal(matrix.shape.at(-1)!), matrix.shape), matrix, 0), { dims: -2 });

/** A length in parts of one size, of at most `most` each; the last one may be longer than what is left for it. */
export interface EvenParts {
  readonly count: number;
  readonly size: number;
}

export const partsOf = (length: number, most: number): EvenParts => {
  const count = Math.max(1, Math.ceil(length / most));
  return { count, size: Math.ceil(length / count) };
};

/** A matrix whose row i is multiplied by entry i of a vector. */
export const rowsTimes = (matrix: Tensor, vector: Tensor): Tensor => multiply(reshape(vector, [-1, 1]), matrix);
