import { scatterAdd, type Tensor, topK, zeros } from "@skein/tensor-core";
import type { SparsePayload } from "./sparse-payload.ts";

/**
 * Returns the `k` entries of greatest magnitude of `x` (f32 [n]), in order of index. Among equal magnitudes, lower
 * indices are preferred; NaN counts as greatest.
 */
export const largestEntries = (x: Tensor, k: number): SparsePayload => {
  const [values, indices] = topK(x, k, { by: "magnitude", sorted: false });
  return { values, indices };
};

/** Returns the dense vector f32 [n] of sparse entries. Entries with equal indices are added in order. */
export const densify = ({ values, indices }: SparsePayload, n: number): Tensor =>
  scatterAdd(zeros([n]), indices, values);
