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
  /** Greatest rank r of what stands for a matrix; less where a matrix has fewer rows or columns. */
  readonly rank: number;
  /**
   * Tensors for which fewer than this many elements stand for one sent travel as they are. 0 compresses whatever has
   * two dimensions. Default: 2, as in the authors' code.
   */
  readonly minimumCompression?: number;
}

/**
 * A tensor `[…, m]` of a bucket as a matrix `[n, m]`, of which rank r is sent; so convolutions are `[kh·kw·in, out]`.
 */
export interface LowRankMatrix {
  /** Position of the tensor in its bucket. */
  readonly index: number;
  readonly rows: number;
  readonly columns: number;
  readonly rank: number;
}

/** Which tensors of a bucket are compressed, and how many elements travel. */
export interface LowRankPlan {
  readonly matrices: readonly LowRankMatrix[];
  /** Positions of the tensors that travel as they are. */
  readonly dense: readonly number[];
  /** Elements of `dense`. */
  readonly denseElements: number;
  /** Elements Σ nr. */
  readonly pElements: number;
  /** Elements Σ mr. */
  readonly qElements: number;
}

export const checkLowRankOptions = (name: string, { rank, minimumCompression = 2 }: LowRankOptions): void => {
  if (!(Number.isInteger(rank) && rank >= 1))
    throw new ArgumentError(`${name}: rank ${rank} is not possible; use an integer from 1, such as 4`);
  if (!(minimumCompression >= 0))
    throw new ArgumentError(
      `${name}: minimumCompression ${minimumCompression} is not possible; use a number from 0, which compresses every matrix`,
    );
};

/** Decide by shapes alone. @param factorsPerStep how many of the two factors a step sends. */
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

/** The tensors of a flat gradient, apart: matrices as such, and the others. */
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

/** Undo `splitLowRank`. */
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

// The golden ratio's digits, as good as any. All ranks must begin alike, in all runs: factors drawn apart add up to
// nothing.
const seed: readonly number[] = [0x9e3779b9, 0x7f4a7c15];

/**
 * A first factor `[size, r]`, the same on all ranks: uniform, columns of length about 1. Exact in f32, so that backends
 * agree.
 */
export const randomFactor = (size: number, { index, rank }: LowRankMatrix): Tensor => {
  const bound = Math.sqrt(3 / size);
  return uniform(foldIn(constant(seed, "u32"), index), [size, rank], { low: -bound, high: bound });
};

// Above rounding, so that orthogonalising parallel columns finds it; and small, since ACP-SGD's P misses as much of the
// gradient.
const renewal = 2 ** -16;

/**
 * The right factor of the last step as this step's start: columns of length 1, and `2⁻¹⁶` of `randomFactor`.
 *
 * Without that, a column that was once zero, or parallel to another, stays so: of a layer that was dead, or of lower
 * rank, for one step, some directions would never be sent again.
 */
export const renewFactor = (q: Tensor, matrix: LowRankMatrix): Tensor =>
  add(unitColumns(q), multiply(randomFactor(matrix.columns, matrix), renewal));

/** `orthogonalise` each; those of one shape at once. */
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
