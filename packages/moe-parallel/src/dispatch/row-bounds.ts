// Symbols: T tokens per rank, K choices per token, C slots per expert for the tokens of one rank.
import { axisSize } from "@skein/tensor-core/backend";
import type { DispatchSizes } from "./token-dispatcher.ts";

type Sizes = Pick<DispatchSizes, "numTokens" | "numChoices" | "slots">;

/**
 * Returns the maximum number of entries with a slot that one rank's tokens can have for n experts:
 * `min(n·C, T·min(K, n))`.
 */
export const maxEntries = (numExperts: number, { numTokens, numChoices, slots }: Sizes): number =>
  Math.min(numExperts * slots, numTokens * Math.min(numChoices, numExperts));

/** Returns the maximum number of one rank's tokens that can have a slot at any of n experts: `min(n·C, T)`. */
export const maxTokens = (numExperts: number, { numTokens, slots }: Sizes): number =>
  Math.min(numExperts * slots, numTokens);

/** Returns the maximum number of rows from one rank to another rank. */
export const maxRowsPerRank = (sizes: DispatchSizes): number => {
  const { numExperts, numChoices, choicesPerRank = numChoices, axis } = sizes;
  return maxEntries(numExperts / axisSize(axis), { ...sizes, numChoices: choicesPerRank });
};
