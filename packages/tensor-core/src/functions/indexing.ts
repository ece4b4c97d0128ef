import { ShapeError } from "../errors.ts";
import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, requireShape, resolveDim, sameShape } from "../shape.ts";
import { add, arange, type DimOption, full, zeros } from "./elementwise.ts";

export interface GatherOptions extends DimOption {
  /** Result for an index out of range: an invalid value or zero, see `gather`. Default: "invalid". */
  readonly outside?: "invalid" | "zero";
}

/**
 * Selects entries of `x` along `dim` (default: 0) by index. The result has shape
 * `x.shape[:dim] + indices.shape + x.shape[dim+1:]`.
 *
 * Kernels cannot throw for an index out of range (index < 0 or index ≥ size). With `outside: "invalid"`, the result for
 * this index is NaN for floats, so that non-finite checks detect the error; the smallest value for i32; the largest
 * value for u32 and u8; true for bool. With `outside: "zero"`, the result is 0.
 *
 * @param indices i32, any shape.
 * @example
 * ```ts
 * const x = NdArray.from([10, 20, 30]);
 * const indices = NdArray.from([2, 0], [2], "i32");
 * const apply = (x: Tensor, indices: Tensor) => gather(x, indices);
 * const result = await evaluate(apply, referenceBackend())(x, indices);
 * console.log(result.toNumbers()); // [30, 10]
 * ```
 */
export const gather = (x: Tensor, indices: Tensor, options: GatherOptions = {}): Tensor => {
  const { dim = 0, outside = "invalid" } = checkOptions("gather(x, indices)", options, { dim: true, outside: true });
  requireOperands("gather", [x, indices]);
  return emitOne("gather", [x, indices], { dim: resolveDim(dim, x.rank, "gather"), outside });
};

/**
 * Looks up rows of `table`, shape [entries, width], by `indices` of any shape. The result has shape indices.shape +
 * [width]. An index out of range gives NaN, see `gather`.
 *
 * @example
 * ```ts
 * const table = NdArray.from([1, 2, 3, 4], [2, 2]);
 * const indices = NdArray.from([1], [1], "i32");
 * const apply = (table: Tensor, indices: Tensor) => embedding(table, indices);
 * const result = await evaluate(apply, referenceBackend())(table, indices);
 * console.log(result.toNumbers()); // [3, 4]
 * ```
 */
export const embedding = (table: Tensor, indices: Tensor): Tensor => gather(table, indices);

/**
 * Returns `base` with `updates` added at `indices` along `dim` (default: 0). Updates with equal indices are added in
 * the order of `indices`. Indices out of range are skipped.
 *
 * @param indices i32, any shape.
 * @param updates Tensor of shape `base.shape[:dim] + indices.shape + base.shape[dim+1:]` with the dtype of `base`: f32,
 * i32 or u32.
 * @example
 * ```ts
 * const base = NdArray.from([0, 0, 0]);
 * const indices = NdArray.from([2, 2], [2], "i32");
 * const updates = NdArray.from([1, 5]);
 * const apply = (base: Tensor, indices: Tensor, updates: Tensor) => scatterAdd(base, indices, updates);
 * const result = await evaluate(apply, referenceBackend())(base, indices, updates);
 * console.log(result.toNumbers()); // [0, 0, 6]
 * ```
 */
export const scatterAdd = (base: Tensor, indices: Tensor, updates: Tensor, options: DimOption = {}): Tensor => {
  const { dim = 0 } = checkOptions("scatterAdd(base, indices, updates)", options, { dim: true });
  requireOperands("scatterAdd", [base, indices, updates]);
  return emitOne("scatter-add", [base, indices, updates], { dim: resolveDim(dim, base.rank, "scatter-add") });
};

/**
 * Sums the rows of `x` by segment: row s of the result is the sum of all rows r with `segmentIds[r] = s`, or 0 if the
 * segment is empty.
 *
 * Segment ids may have any order; rows with an id below 0 or at least numSegments are skipped. All backends add rows in
 * their original order, so equal inputs give bitwise equal results. The gradient of a row is the gradient of its
 * segment.
 *
 * @param x f32, i32 or u32 [rows, ...]. @param segmentIds i32 [rows]. @returns [numSegments, ...].
 * Cost: as `scatterAdd` to zeros. The CPU reads each row once. WebGPU sorts the ids if there are many rows, then reads
 * each row once.
 * @throws ShapeError if the number of ids differs from the number of rows, or if `numSegments` is not a valid size.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3]);
 * const ids = NdArray.from([0, 1, 0], [3], "i32");
 * const result = await evaluate((x: Tensor, ids: Tensor) => segmentSum(x, ids, 2), referenceBackend())(x, ids);
 * console.log(result.toNumbers()); // [4, 2]
 * ```
 */
export const segmentSum = (x: Tensor, segmentIds: Tensor, numSegments: number): Tensor => {
  requireOperands("segmentSum", [x, segmentIds]);
  requireShape("segmentSum", [numSegments]);
  if (segmentIds.dtype !== "i32" || x.rank === 0 || !sameShape(segmentIds.shape, x.shape.slice(0, 1)))
    throw new ShapeError(
      "segmentSum",
      `${formatSpec(segmentIds)} does not match the rows of ${formatSpec(x)}; pass i32, one id per entry of dimension 0`,
    );
  return scatterAdd(zeros([numSegments, ...x.shape.slice(1)], x.dtype), segmentIds, x);
};

/**
 * Permutes the entries of `x` along `dim` (default: 0): `gather` by a permutation. Because no entry is selected twice,
 * the gradient is a gather by the inverse permutation, without additions.
 *
 * @param permutation i32 [x.shape[dim]], a permutation of 0 … size−1. If `permutation` is not a permutation, indices
 * out of range give NaN, and the gradient of an entry without an index is NaN.
 * @example
 * ```ts
 * const x = NdArray.from([10, 20, 30]);
 * const order = NdArray.from([2, 0, 1], [3], "i32");
 * const apply = (x: Tensor, order: Tensor) => permuteRows(x, order);
 * const result = await evaluate(apply, referenceBackend())(x, order);
 * console.log(result.toNumbers()); // [30, 10, 20]
 * ```
 */
export const permuteRows = (x: Tensor, permutation: Tensor, options: DimOption = {}): Tensor => {
  const { dim = 0 } = checkOptions("permuteRows(x, permutation)", options, { dim: true });
  requireOperands("permuteRows", [x, permutation]);
  const along = resolveDim(dim, x.rank, "permuteRows");
  if (permutation.rank !== 1 || permutation.shape[0] !== x.shape[along])
    throw new ShapeError(
      "permuteRows",
      `${formatSpec(permutation)} does not permute the ${x.shape[along]} entries of dimension ${along} of ${formatSpec(x)}; name each entry once`,
    );
  return emitOne("gather", [x, permutation], { dim: along, outside: "invalid", permutation: true });
};

/**
 * Computes the inverse of `permutation` (i32 vector); −1 for an entry that no index selects.
 *
 * @example
 * ```ts
 * const apply = invertPermutation;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([2, 0, 1], [3], "i32"));
 * console.log(result.toNumbers()); // [1, 2, 0]
 * ```
 */
export const invertPermutation = (permutation: Tensor): Tensor => {
  requireOperands("invertPermutation", [permutation]);
  const { dtype, shape } = permutation;
  if (dtype !== "i32" || shape.length !== 1)
    throw new ShapeError(
      "invertPermutation",
      `${formatSpec(permutation)} is not a permutation; it must be i32 of rank 1`,
    );
  return scatterAdd(full(shape, -1, "i32"), permutation, add(arange(shape[0]!), 1));
};

/**
 * Returns the indices of the true entries of a vector.
 *
 * @param mask bool [n].
 * @param capacity Maximum number of returned indices; only the first true entries are returned.
 * @returns `indices` i32 [capacity], ascending, padded with 0; `count` i32 [], number of valid indices, at most
 * `capacity`.
 * @example
 * ```ts
 * const apply = (mask: Tensor) => nonzero(mask, 2).indices;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 1, 1], [3], "bool"));
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const nonzero = (mask: Tensor, capacity: number): { readonly indices: Tensor; readonly count: Tensor } => {
  const [indices, count] = emit("nonzero", [mask], { capacity });
  return { indices: indices!, count: count! };
};

/** Result of `compact`: the selected entries of a vector, their number, and the largest magnitude in the vector. */
export interface CompactEntries {
  /** Values of the selected entries, f32 [capacity], padded with zeros. */
  readonly values: Tensor;
  /** Indices of the selected entries, i32 [capacity], ascending, padded with 0. */
  readonly indices: Tensor;
  /** Number of entries whose magnitude is at least the bound, i32 [], including entries beyond the capacity. */
  readonly count: Tensor;
  /** Largest magnitude of the whole vector, f32 []; NaN if the vector contains NaN. */
  readonly greatest: Tensor;
}

/**
 * Selects the entries of a vector with magnitude at least `bound`, in one read; only the first `capacity` are returned.
 * Zeros are never selected. NaN entries are always selected; a NaN bound is treated as infinite.
 *
 * @param x f32 [n]. @param bound f32 []; its sign is ignored.
 */
export const compact = (x: Tensor, bound: Tensor, capacity: number): CompactEntries => {
  const [values, indices, count, greatest] = emit("compact", [x, bound], { capacity });
  return { values: values!, indices: indices!, count: count!, greatest: greatest! };
};
