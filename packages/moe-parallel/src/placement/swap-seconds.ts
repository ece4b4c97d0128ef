import { ArgumentError } from "@skein/tensor-core";
import type { Routing } from "../routing/routing.ts";
import { checkExchangeInputs, groupsOfExperts, messageCounts } from "./exchange-counts.ts";
import { type Exchange, type ExchangeLevels, exchangesOf } from "./exchange-levels.ts";
import { checkExchangeOptions } from "./exchange-seconds.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { defaultGamma, smoothMaximum } from "./smooth-maximum.ts";
import { swapCounts } from "./swap-counts.ts";

export interface SwapSecondsOptions {
  /** Bytes per token: model width times bytes per number. */
  readonly bytesPerToken: number;
  /** d, number of levels of the exchange; 1 for the flat exchange. */
  readonly numLevels: number;
  /** Exponent γ of the smooth maximum over messages, finite. Default: 10. */
  readonly gamma?: number;
}

/**
 * Returns, for each pair of groups, the sum of `sums` over all other groups. Computed without subtraction, so that no
 * precision is lost.
 */
const sumsOfOthers = (sums: Float64Array): Float64Array => {
  const numGroups = sums.length;
  const others = new Float64Array(numGroups * numGroups);
  for (let a = 0; a < numGroups; a++)
    for (let b = 0; b < a; b++) {
      let sum = 0;
      for (let group = 0; group < numGroups; group++) if (group !== a && group !== b) sum += sums[group]!;
      others[a * numGroups + b] = others[b * numGroups + a] = sum;
    }
  return others;
};

/** Adds the predicted time of one all-to-all after each possible swap of two experts to `seconds`, f64[E · E]. */
const addExchange = (
  seconds: Float64Array,
  routing: Routing,
  groupOf: Int32Array,
  exchange: Exchange,
  { numRanks, bytesPerToken, gamma }: { numRanks: number; bytesPerToken: number; gamma: number },
): void => {
  const { numExperts } = routing;
  const { numGroups, parentGroupSize, numPeers, line } = exchange;
  const counts = messageCounts(routing, groupOf, exchange, numRanks);
  const largest = counts.reduce((a, b) => Math.max(a, b), 0);
  const secondsOf = (maximum: number): number =>
    line.startupSeconds + line.secondsPerByte * numPeers * maximum * bytesPerToken;
  const current = secondsOf(smoothMaximum(counts, gamma));
  const { gained, alone, aloneWith } = swapCounts(routing, groupOf, exchange, numRanks);
  const power = (count: number): number => (count / largest) ** gamma;
  const sums = new Float64Array(numGroups);
  for (const [i, count] of counts.entries()) if (count > 0) sums[Math.floor(i / parentGroupSize)]! += power(count);
  const others = sumsOfOthers(sums);
  /**
   * Returns the number of tokens in one message to the group of expert `left`, after expert `come` has replaced `left`
   * in this group.
   */
  const countAfter = (left: number, come: number, offset: number): number =>
    counts[groupOf[left]! * parentGroupSize + offset]! +
    gained[(come * numGroups + groupOf[left]!) * parentGroupSize + offset]! -
    alone[left * parentGroupSize + offset]! +
    aloneWith[(left * numExperts + come) * parentGroupSize + offset]!;
  for (let a = 0; a < numExperts; a++) {
    seconds[a * numExperts + a]! += current;
    for (let b = 0; b < a; b++) {
      let after = current;
      // If nothing is sent, no swap changes the time.
      if (groupOf[a] !== groupOf[b] && largest > 0) {
        let sum = others[groupOf[a]! * numGroups + groupOf[b]!]!;
        for (let offset = 0; offset < parentGroupSize; offset++)
          sum += power(countAfter(a, b, offset)) + power(countAfter(b, a, offset));
        after = secondsOf(largest * sum ** (1 / gamma));
      }
      seconds[a * numExperts + b]! += after;
      seconds[b * numExperts + a]! += after;
    }
  }
};

/**
 * Predicts the time of a token exchange after swapping any two experts: Q[a, b] is t(d) of `exchangeSeconds`, with a
 * smooth maximum, for the placement with a and b swapped. Q[a, a] is t(d) for the current placement. Q is symmetric.
 *
 * Message counts are the counts for the current placement, plus the changes by each swap. A single pass over the tokens
 * computes the changes for all pairs.
 *
 * Cost: O(d · (T · K · (G + K) + E² · P + G³)), with P ranks per parent group, at most G; memory of E · (E + G) · P
 * integers.
 *
 * @param routing routing of all ranks' tokens, in rank order, with equal numbers per rank.
 * @returns f64[E · E], in seconds.
 * @throws ArgumentError under the conditions of `exchangeSeconds`, if the levels do not exist, or if γ is not finite.
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591, HierD-ES.
 */
export const swapSeconds = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { bytesPerToken, numLevels, gamma = defaultGamma }: SwapSecondsOptions,
): Float64Array => {
  checkExchangeInputs("swapSeconds", routing, placement, levels);
  checkExchangeOptions("swapSeconds", { bytesPerToken, gamma });
  if (gamma === Infinity)
    throw new ArgumentError("swapSeconds: gamma is Infinity; use a finite number, for example 10");
  if (!Number.isInteger(numLevels) || numLevels < 1 || numLevels > levels.levels.length + 1)
    throw new ArgumentError(
      `swapSeconds: numLevels is ${numLevels}, but ${levels.levels.length + 1} levels were measured; use 1 to ${levels.levels.length + 1}`,
    );
  const seconds = new Float64Array(routing.numExperts ** 2);
  for (const exchange of exchangesOf(levels, numLevels))
    addExchange(seconds, routing, groupsOfExperts(placement, exchange.numGroups), exchange, {
      numRanks: levels.numRanks,
      bytesPerToken,
      gamma,
    });
  return seconds;
};
