import {
  add,
  ArgumentError,
  concat,
  constant,
  elementCount,
  foldIn,
  multiply,
  reshape,
  type Shape,
  stack,
  split,
  type Tensor,
  uniform,
  zeros,
} from "@skein/tensor-core";
import { type Bucket, unflattenBucket } from "./bucket.ts";
import { orthogonalise, unitColumns } from "./orthogonalise.ts";

export interface LowRankOptions {
  /** Maximum rank r of a matrix's approximation. A matrix with fewer than r rows or columns has a lower rank. */
  readonly rank: number;
  /**
   * Minimum compression ratio: number of elements of a tensor, divided by the average number of factor elements sent
   * per step. Tensors with a lower ratio are sent unchanged. 0 compresses every tensor with two or more dimensions.
   * Default: 2, as in the authors' code.
   */
  readonly minimumCompression?: number;
}

/**
 * A tensor `[…, m]` of a bucket, viewed as a matrix `[n, m]` that is sent with rank r. A convolution kernel becomes
 * `[kh·kw·in, out]`.
 */
export interface LowRankMatrix {
  /** Index of the tensor in its bucket. */
  readonly index: number;
  readonly rows: number;
  readonly columns: number;
  readonly rank: number;
}

/** Compressed and uncompressed tensors of a bucket, with the element counts to send. */
export interface LowRankPlan {
  readonly matrices: readonly LowRankMatrix[];
  /** Indices of tensors that are sent unchanged. */
  readonly dense: readonly number[];
  /** Total number of elements of the `dense` tensors. */
  readonly denseElements: number;
  /** Total number of elements of the left factors, Σ nr. */
  readonly pElements: number;
  /** Total number of elements of the right factors, Σ mr. */
  readonly qElements: number;
}

export const checkLowRankOptions = (name: string, { rank, minimumCompression = 2 }: LowRankOptions): void => {
  if (!(Number.isInteger(rank) && rank >= 1))
    throw new ArgumentError(`${name}: rank ${rank} is not a positive integer; use an integer from 1, such as 4`);
  if (!(minimumCompression >= 0))
    throw new ArgumentError(
      `${name}: minimumCompression ${minimumCompression} is not a number from 0; use 0 to compress every matrix, or a larger number`,
    );
};

/**
 * Decides from shapes alone which tensors of a bucket are compressed.
 *
 * @param factorsPerStep number of factors to send per step.
 */
export const planLowRank = (
  { tensors }: Bucket,
  { rank, minimumCompression = 2 }: LowRankOptions,
  factorsPerStep: 1 | 2,
): LowRankPlan => {
  const candidate = (shape: Shape, index: number): LowRankMatrix[] => {
    const [elements, columns] = [elementCount(shape), shape.at(-1)!];
    if (shape.length < 2 || elements === 0) return [];
    const rows = elements / columns;
    const r = Math.min(rank, rows, columns);
    return elements > (minimumCompression * factorsPerStep * r * (rows + columns)) / 2
      ? [{ index, rows, columns, rank: r }]
      : [];
  };
  const matrices = tensors.flatMap(({ shape }, index) => candidate(shape, index));
  const compressed = new Set(matrices.map(({ index }) => index));
  const dense = tensors.flatMap((_, index) => (compressed.has(index) ? [] : [index]));
  return {
    matrices,
    dense,
    denseElements: dense.reduce((count, index) => count + elementCount(tensors[index]!.shape), 0),
    pElements: matrices.reduce((count, { rows, rank: r }) => count + rows * r, 0),
    qElements: matrices.reduce((count, { columns, rank: r }) => count + columns * r, 0),
  };
};

/** Splits a flat gradient into the matrices to compress and the tensors to send unchanged. */
export const splitLowRank = (
  gradient: Tensor,
  bucket: Bucket,
  { matrices, dense }: LowRankPlan,
): { readonly matrices: Tensor[]; readonly dense: Tensor[] } => {
  const tensors = unflattenBucket(gradient, bucket);
  return {
    matrices: matrices.map(({ index, rows, columns }) => reshape(tensors[index]!, [rows, columns])),
    dense: dense.map((index) => tensors[index]!),
  };
};

/** Joins matrices and uncompressed tensors to a flat gradient. Inverse of `splitLowRank`. */
export const joinLowRank = (
  parts: { readonly matrices: readonly Tensor[]; readonly dense: readonly Tensor[] },
  { matrices, dense }: LowRankPlan,
): Tensor => {
  const tensors: Tensor[] = [];
  matrices.forEach(({ index }, i) => (tensors[index] = parts.matrices[i]!));
  dense.forEach((index, i) => (tensors[index] = parts.dense[i]!));
  if (tensors.length === 0) return zeros([0]);
  return concat(tensors.map((tensor) => reshape(tensor, [elementCount(tensor.shape)])));
};

// Seed: digits of the golden ratio, an arbitrary constant. All ranks need the same initial factors in every run,
// because products with different factors cannot be averaged.
const seed: readonly number[] = [0x9e3779b9, 0x7f4a7c15];

/**
 * Returns an initial factor `[size, r]`, equal on all ranks: uniform, with columns of length about 1. Computed exactly
 * in f32, so that backends agree.
 */
export const randomFactor = (size: number, { index, rank }: LowRankMatrix): Tensor => {
  const bound = Math.sqrt(3 / size);
  return uniform(foldIn(constant(seed, "u32"), index), [size, rank], { low: -bound, high: bound });
};

// Share of the random part in a renewed factor. Larger than rounding errors, so that orthogonalisation separates
// parallel columns. Small, because ACP-SGD's P misses this share of the gradient.
const renewal = 2 ** -16;

/**
 * Returns the start value of this step's right factor: the previous step's factor with columns of length 1, plus `2⁻¹⁶`
 * of `randomFactor`.
 *
 * Without the random part, a column that is zero or parallel to another column would never change. After one step in
 * which a layer's gradient is zero or of lower rank, some directions would never be sent again.
 */
export const renewFactor = (q: Tensor, matrix: LowRankMatrix): Tensor =>
  add(unitColumns(q), multiply(randomFactor(matrix.columns, matrix), renewal));

/** Applies `orthogonalise` to each factor. Factors of equal shape are batched. */
export const orthogonaliseAll = (factors: readonly Tensor[]): Tensor[] => {
  const result: Tensor[] = [];
  const byShape = Map.groupBy(factors.keys(), (i) => factors[i]!.shape.join());
  for (const members of byShape.values()) {
    const together = orthogonalise(stack(members.map((i) => factors[i]!)));
    split(together, members.length).forEach(
      (q, at) => (result[members[at]!] = reshape(q, factors[members[at]!]!.shape)),
    );
  }
  return result;
};
