import { compact, isFinite, type Tensor } from "@skein/tensor-core";
import type { SparsePayload } from "./sparse-payload.ts";

/** Entries that reach a bound, with room for `capacity` of them. */
export interface ReachingEntries extends SparsePayload {
  /** bool [], whether all of the gradient is finite. */
  readonly finite: Tensor;
}

/**
 * The first `capacity` entries of `flat` whose magnitude reaches `bound`, by position, zeros behind them. Zeros never
 * reach it.
 *
 * @param flat f32 [n]. @param bound f32 []. @param capacity at most n.
 * Cost: one read of the gradient.
 */
export const reachingEntries = (flat: Tensor, bound: Tensor, capacity: number): ReachingEntries => {
  const { values, indices, greatest } = compact(flat, bound, capacity);
  return { values, indices, finite: isFinite(greatest) };
};
