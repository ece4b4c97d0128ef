import {
  broadcastTo,
  type DecayMask,
  elementCount,
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

/**
 * Function that returns the number of leading dimensions of a parameter that index separate matrices: 1 for expert
 * weights [experts, inputs, outputs], 0 for a kernel [height, width, inputs, outputs], which is a single matrix.
 * `findLayers` returns these numbers for the parameters of a model.
 */
export type StackDims = (path: string) => number;

export const noStacks: StackDims = () => 0;

/**
 * Whether a tensor contains matrices: dense weights [inputs, outputs], kernels [height, width, inputs, outputs], or
 * stacks [experts, inputs, outputs].
 *
 * @param stackDims number of leading dimensions that index separate matrices. Default: 0.
 */
export const isMatrix = ({ shape }: { readonly shape: Shape }, stackDims = 0): boolean => shape.length >= stackDims + 2;

/** Returns a mask that selects weights, kernels and stacks of weights, but not biases and gains of norms. */
export const matricesBy =
  (stackDims: StackDims): DecayMask =>
  (path, param) =>
    isMatrix(param, stackDims(path));

/**
 * Reshapes a weight to a matrix [inputs, outputs], in which all dimensions except the last become rows. A stack becomes
 * [matrices, inputs, outputs].
 */
export const asMatrices = (x: Tensor, stackDims = 0): Tensor => {
  const columns = x.shape.at(-1)!;
  if (stackDims > 0) return reshape(x, [elementCount(x.shape.slice(0, stackDims)), -1, columns]);
  return x.rank === 2 ? x : reshape(x, [-1, columns]);
};

/** Returns the numbers of rows and columns per matrix of [..., rows, columns]. */
export const sidesOf = ({ shape }: Tensor): readonly [rows: number, columns: number] =>
  shape.slice(-2) as unknown as [number, number];

export const restoreShape = (matrix: Tensor, before: Tensor): Tensor =>
  matrix.rank === before.rank ? matrix : reshape(matrix, before.shape);

/** Returns a mask of the diagonal, bool [n, n]. */
export const onDiagonal = (n: number): Tensor =>
  equal(iota([n, n], "i32", { dim: 0 }), iota([n, n], "i32", { dim: 1 }));

/** Returns an identity matrix, f32 [n, n]. */
export const identityMatrix = (n: number): Tensor => where(onDiagonal(n), full([n, n], 1), 0);

/** Returns the diagonals of [..., n, n], as [..., n]. */
export const diagonalOf = (matrix: Tensor): Tensor =>
  sum(where(broadcastTo(onDiagonal(matrix.shape.at(-1)!), matrix.shape), matrix, 0), { dims: -2 });

/** Partition of a dimension into parts of equal length. The last part may extend past the end of the dimension. */
export interface EvenParts {
  readonly count: number;
  readonly size: number;
}

export const partsOf = (length: number, most: number): EvenParts => {
  const count = Math.max(1, Math.ceil(length / most));
  return { count, size: Math.ceil(length / count) };
};

/** Multiplies row i of a matrix by entry i of a vector. */
export const rowsTimes = (matrix: Tensor, vector: Tensor): Tensor => multiply(reshape(vector, [-1, 1]), matrix);
