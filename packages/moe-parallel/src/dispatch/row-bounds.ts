// Symbols: T tokens of a rank, K choices of a token, C slots of an expert for tokens of one rank.
import { axisSize } from "@skein/tensor-core/backend";
import type { DispatchSizes } from "./token-dispatcher.ts";

type Sizes = Pick<DispatchSizes, "numTokens" | "numChoices" | "slots">;

/** Maximum number of entries of a rank's tokens that can go to n of the experts: `min(n·C, T·min(K, n))`. */
export const maxEntries = (numExperts: number, { numTokens, numChoices, slots }: Sizes): number =>
  Math.min(numExperts * slots, numTokens * Math.min(numChoices, numExperts));

/** Maximum number of tokens of a rank with an entry for n of the experts: `min(n·C, T)`. */
export const maxTokens = (numExperts: number, { numTokens, slots }: Sizes): number =>
  Math.min(numExperts * slots, numTokens);

/** Maximum number of rows from one rank to another. */
export const maxRowsPerRank = (sizes: DispatchSizes): number => {
  const { numExperts, numChoices, choicesPerRank = numChoices, axis } = sizes;
  return maxEntries(numExperts / axisSize(axis), { ...sizes, numChoices: choicesPerRank });
};
