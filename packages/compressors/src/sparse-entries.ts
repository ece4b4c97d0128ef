import { scatterAdd, type Tensor, topK, zeros } from "@skein/tensor-core";
import type { SparsePayload } from "./sparse-payload.ts";

/**
 * The `k` entries of greatest magnitude of `x` (f32 [n]), positions increasing; lower positions first among equals, NaN
 * greatest.
 */
export const largestEntries = (x: Tensor, k: number): SparsePayload => {
  const [values, indices] = topK(x, k, { by: "magnitude", sorted: false });
  return { values, indices };
};

/** The vector f32 [n] that these entries stand for; those of equal positions add up, in their order. */
export const densify = ({ values, indices }: SparsePayload, n: number): Tensor =>
  scatterAdd(zeros([n]), indices, values);
