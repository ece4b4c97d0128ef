import { compact, isFinite, type Tensor } from "@skein/tensor-core";
import type { SparsePayload } from "./sparse-payload.ts";

/** Entries whose magnitude is at least a bound, up to a fixed capacity. */
export interface BoundSelection extends SparsePayload {
  /** Whether all entries of the gradient are finite, bool []. */
  readonly finite: Tensor;
}

/**
 * Returns the first `capacity` entries of `flat`, by index, with a magnitude of at least `bound`, followed by zeros.
 * Zero entries are never selected.
 *
 * @param flat f32 [n]. @param bound f32 []. @param capacity at most n.
 * Cost: one read of the gradient.
 */
export const selectByBound = (flat: Tensor, bound: Tensor, capacity: number): BoundSelection => {
  const { values, indices, greatest } = compact(flat, bound, capacity);
  return { values, indices, finite: isFinite(greatest) };
};
