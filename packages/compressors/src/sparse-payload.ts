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

/** Entries of a flat gradient; all others are 0. */
export interface SparsePayload {
  /** f32 [k] */
  readonly values: Tensor;
  /** i32 [k], positions in the flat gradient, each at most once. Where a value is 0 because there was no entry, 0. */
  readonly indices: Tensor;
}

/** Values and positions side by side, u32 `[k, 2]`: one message instead of two. 8k bytes. */
export const packSparse = ({ values, indices }: SparsePayload): Tensor =>
  stack([bitcast(values, "u32"), bitcast(indices, "u32")], { dim: 1 });

/** What `packSparse` packed, of one rank or of several one after another. */
export const unpackSparse = (packed: Tensor): SparsePayload => {
  const count = packed.shape[0]!;
  const column = (i: number): Tensor => reshape(slice(packed, [0, i], [count, i + 1]), [count]);
  return { values: bitcast(column(0), "f32"), indices: bitcast(column(1), "i32") };
};

/** Positions with room for `capacity` of them. */
export interface Positions {
  /** i32 [capacity], 0 behind the last one. */
  readonly indices: Tensor;
  /** i32 [] */
  readonly count: Tensor;
}

/**
 * The first `capacity` positions of two sets without common members: those of `first` before those of `second`, each
 * ascending.
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
 * These entries, or NaN for every value where the gradient is not `finite` (bool []) throughout: its bad entry may be
 * none of those that were picked.
 */
export const nanUnless = (finite: Tensor, { values, indices }: SparsePayload): SparsePayload => ({
  values: where(finite, values, NaN),
  indices,
});
