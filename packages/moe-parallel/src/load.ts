// Shapes: T tokens of this rank, E experts, K choices of a token.
import { cast, full, histogram, reshape, type Tensor } from "@skein/tensor-core";

/**
 * How many choices fall on each expert: i32 [E]. What is outside 0 … E − 1 is no choice.
 *
 * Cost: each choice once.
 */
export const countPerExpert = (choices_TK: Tensor, numExperts: number): Tensor => {
  const flat = cast(reshape(choices_TK, [-1]), "f32");
  // Over [0, E] each bin is one wide. E itself would count in the last one, but no choice is E.
  return histogram(flat, full([], 0), full([], numExperts), numExperts);
};
