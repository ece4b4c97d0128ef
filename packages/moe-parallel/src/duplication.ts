// Shapes: T tokens of this rank, K choices per token, P ranks, e experts per rank.
import {
  add,
  arange,
  divide,
  full,
  less,
  minimum,
  multiply,
  reshape,
  scatterAdd,
  sum,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";
import type { Order } from "./order.ts";

/**
 * Counts the distinct (token, rank) pairs in which the token has a slot at an expert of the rank, f32 []. If the count
 * is below the number of choices with a slot, some tokens are sent to one rank for several choices.
 *
 * @param own e, number of experts per rank.
 * Cost: T·K + T·P numbers.
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export const countTokenRankPairs = ({ experts_TK, slots_TK }: Order, numRanks: number, own: number): Tensor => {
  const [numTokens, numChoices] = experts_TK.shape as [number, number];
  const numPairs = numTokens * numRanks;
  const first_T1 = multiply(reshape(arange(numTokens), [numTokens, 1]), numRanks);
  const pair_TK = where(less(slots_TK, 0), numPairs, add(first_T1, divide(experts_TK, own)));
  const counts = scatterAdd(
    zeros([numPairs]),
    reshape(pair_TK, [numTokens * numChoices]),
    full([numTokens * numChoices], 1),
  );
  return sum(minimum(counts, 1));
};
