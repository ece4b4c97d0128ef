import {
  add,
  arange,
  bitcast,
  gather,
  less,
  minimum,
  nonzero,
  reshape,
  slice,
  stack,
  subtract,
  type Tensor,
  where,
} from "@skein/tensor-core";

/** Nonzero entries of a flat gradient; all other entries are 0. */
export interface SparsePayload {
  /** Values, f32 [k]. */
  readonly values: Tensor;
  /** Indices in the flat gradient, i32 [k], each at most once. Unused slots have value 0 and index 0. */
  readonly indices: Tensor;
}

/** Packs values and indices in one message, u32 `[k, 2]`, 8k bytes. */
export const packSparse = ({ values, indices }: SparsePayload): Tensor =>
  stack([bitcast(values, "u32"), bitcast(indices, "u32")], { dim: 1 });

/** Inverse of `packSparse`, for the message of one rank or concatenated messages of several ranks. */
export const unpackSparse = (packed: Tensor): SparsePayload => {
  const count = packed.shape[0]!;
  const column = (i: number): Tensor => reshape(slice(packed, [0, i], [count, i + 1]), [count]);
  return { values: bitcast(column(0), "f32"), indices: bitcast(column(1), "i32") };
};

/** Indices of entries, up to a fixed capacity. */
export interface Positions {
  /** Indices, i32 [capacity]; 0 after the last used slot. */
  readonly indices: Tensor;
  /** Number of used slots, i32 []. */
  readonly count: Tensor;
}

/**
 * Returns the first `capacity` indices of two disjoint sets: the indices of `first` in ascending order, then the
 * indices of `second` in ascending order.
 *
 * @param first bool [n]. @param second bool [n].
 */
export const firstThenSecond = (first: Tensor, second: Tensor, capacity: number): Positions => {
  const [preferred, others] = [nonzero(first, capacity), nonzero(second, capacity)];
  const slot = arange(capacity);
  const { count } = preferred;
  const total = minimum(add(count, others.count), capacity);
  const indices = where(
    less(slot, count),
    preferred.indices,
    gather(others.indices, subtract(slot, count), { outside: "zero" }),
  );
  return { indices, count: total };
};

/**
 * Replaces all values by NaN unless the gradient is `finite` (bool []). Necessary because a non-finite entry may not be
 * selected.
 */
export const nanUnless = (finite: Tensor, { values, indices }: SparsePayload): SparsePayload => ({
  values: where(finite, values, NaN),
  indices,
});
