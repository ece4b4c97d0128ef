// Shapes: T tokens of this rank, E experts, K choices per token.
import { cast, full, histogram, reshape, type Tensor } from "@skein/tensor-core";

/**
 * Counts the choices of each expert: i32 [E]. Values outside 0 … E − 1 are ignored.
 *
 * Cost: one pass over the choices.
 */
export const countPerExpert = (choices_TK: Tensor, numExperts: number): Tensor => {
  const flat = cast(reshape(choices_TK, [-1]), "f32");
  // Over the range [0, E], each bin has width 1. A value E would count in the last bin, but expert indices are below E.
  return histogram(flat, full([], 0), full([], numExperts), numExperts);
};
