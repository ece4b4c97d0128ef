import { ShapeError } from "../errors.ts";
import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, requireShape, resolveDim, sameShape } from "../shape.ts";
import { add, arange, type DimOption, full, zeros } from "./elementwise.ts";

export interface GatherOptions extends DimOption {
  /** What an index outside the dimension yields. Default: "invalid". */
  readonly outside?: "invalid" | "zero";
}

/**
 * Take entries of `x` along `dim` (0 by default) by number: the result has shape `x.shape[:dim] + indices.shape +
 * x.shape[dim+1:]`.
 *
 * An index outside 0 ≤ index < size (negative ones too) cannot raise an error on a device. It yields NaN for floats, so
 * that the step stops at its non-finite check; the least value for i32, the greatest for u32 and u8, true for bool; or
 * zeros with `outside: "zero"`.
 *
 * @param indices i32, any shape.
 */
export const gather = (x: Tensor, indices: Tensor, options: GatherOptions = {}): Tensor => {
  const { dim = 0, outside = "invalid" } = checkOptions("gather(x, indices)", options, { dim: true, outside: true });
  requireOperands("gather", [x, indices]);
  return emitOne("gather", [x, indices], { dim: resolveDim(dim, x.rank, "gather"), outside });
};

/**
 * Rows of `table` [entries, width] by number: indices [...] → [..., width]. An index without a row yields NaN, see
 * `gather`.
 */
export const embedding = (table: Tensor, indices: Tensor): Tensor => gather(table, indices);

/**
 * `base` with `updates` added at `indices` along `dim` (0 by default); equal indices add up, in the order of `indices`.
 * An index outside the dimension is left out.
 *
 * @param indices i32, any shape.
 * @param updates shape `base.shape[:dim] + indices.shape + base.shape[dim+1:]`, dtype of `base`: f32, i32 or u32.
 */
export const scatterAdd = (base: Tensor, indices: Tensor, updates: Tensor, options: DimOption = {}): Tensor => {
  const { dim = 0 } = checkOptions("scatterAdd(base, indices, updates)", options, { dim: true });
  requireOperands("scatterAdd", [base, indices, updates]);
  return emitOne("scatter-add", [base, indices, updates], { dim: resolveDim(dim, base.rank, "scatter-add") });
};

/**
 * Add up the rows of `x` that have the same number: row s of the result is the sum of all rows r with `segmentIds[r] =
 * s`, 0 where there is none.
 *
 * Numbers come in any order; a row whose number is outside 0 ≤ number < numSegments (a negative one too) is left out.
 * Rows are added in their own order on every backend, so the same input gives the same bits. The gradient of a row is
 * that of its segment.
 *
 * @param x f32, i32 or u32 [rows, ...]. @param segmentIds i32 [rows]. @returns [numSegments, ...].
 * Cost: that of `scatterAdd` onto zeros: each row once on the CPU; on WebGPU a sort of the numbers of many rows, then
 * each row once.
 * @throws ShapeError where the numbers are not one per row, or `numSegments` is no size.
 */
export const segmentSum = (x: Tensor, segmentIds: Tensor, numSegments: number): Tensor => {
  requireOperands("segmentSum", [x, segmentIds]);
  requireShape("segmentSum", [numSegments]);
  if (segmentIds.dtype !== "i32" || x.rank === 0 || !sameShape(segmentIds.shape, x.shape.slice(0, 1)))
    throw new ShapeError(
      "segmentSum",
      `${formatSpec(segmentIds)} does not number the rows of ${formatSpec(x)}; give i32, one number per entry of dimension 0`,
    );
  return scatterAdd(zeros([numSegments, ...x.shape.slice(1)], x.dtype), segmentIds, x);
};

/**
 * The entries of `x` along `dim` (0 by default) in another order: `gather` by a permutation. Because no entry is taken
 * twice, the gradient is taken by the inverse permutation, which moves the same bytes again and adds nothing.
 *
 * @param permutation i32 [x.shape[dim]], each of 0 … size−1 once. One that is none takes NaN where it names no row, and
 * its gradient has NaN where a row was named never.
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

/** The permutation that undoes `permutation` (i32, rank 1); −1 where an entry was named never. */
export const invertPermutation = (permutation: Tensor): Tensor => {
  requireOperands("invertPermutation", [permutation]);
  const { dtype, shape } = permutation;
  if (dtype !== "i32" || shape.length !== 1)
    throw new ShapeError("invertPermutation", `${formatSpec(permutation)} is no permutation; it must be i32 of rank 1`);
  return scatterAdd(full(shape, -1, "i32"), permutation, add(arange(shape[0]!), 1));
};

/**
 * Positions of the trues of a vector.
 *
 * @param mask bool [n].
 * @param capacity most positions that are returned: those of the first trues.
 * @returns `indices` i32 [capacity], ascending, 0 behind the last one; `count` i32 [], how many of them count, at most
 * `capacity`.
 */
export const nonzero = (mask: Tensor, capacity: number): { readonly indices: Tensor; readonly count: Tensor } => {
  const [indices, count] = emit("nonzero", [mask], { capacity });
  return { indices: indices!, count: count! };
};

/** What `compact` returns. */
export interface CompactEntries {
  /** f32 [capacity], zeros behind the last one. */
  readonly values: Tensor;
  /** i32 [capacity], ascending, 0 behind the last one. */
  readonly indices: Tensor;
  /** i32 []: how many reach the bound, those without room too. */
  readonly count: Tensor;
  /** f32 []: the greatest magnitude of all of the vector, NaN where it holds one. */
  readonly greatest: Tensor;
}

/**
 * The entries of a vector whose magnitude reaches a bound, in one read: the first `capacity` of them. Zeros never reach
 * it. A NaN always does; a bound that is NaN counts as infinite.
 *
 * @param x f32 [n]. @param bound f32 [], its sign does not count.
 */
export const compact = (x: Tensor, bound: Tensor, capacity: number): CompactEntries => {
  const [values, indices, count, greatest] = emit("compact", [x, bound], { capacity });
  return { values: values!, indices: indices!, count: count!, greatest: greatest! };
};
