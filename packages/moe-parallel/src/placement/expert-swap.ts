import { ArgumentError } from "@skein/tensor-core";
import type { Routing } from "../routing/routing.ts";
import type { ExchangeLevels } from "./exchange-levels.ts";
import { exchangeSeconds } from "./exchange-seconds.ts";
import { withExpertsSwapped, type ExpertPlacement } from "./expert-placement.ts";
import { defaultGamma } from "./smooth-maximum.ts";
import { swapSeconds } from "./swap-seconds.ts";

/** Largest relative time difference that rounding can cause when the same terms are summed in another order. */
const roundingGain = 1e-12;

/** Swap of two experts, with predicted exchange times before and after. */
export interface ExpertSwap {
  /** The two swapped experts, lower number first. */
  readonly experts: readonly [number, number];
  /** d, number of levels of the exchange for which the swap was chosen: the fastest exchange before the swap. */
  readonly numLevels: number;
  /** Predicted time t(d) with the smooth maximum, in seconds. */
  readonly secondsBefore: number;
  readonly secondsAfter: number;
}

export interface PlanExpertSwapOptions {
  /** Bytes per token: model width times bytes per number. */
  readonly bytesPerToken: number;
  /** Exponent γ of the smooth maximum, finite. Default: 10. */
  readonly gamma?: number;
}

/**
 * Finds the two experts whose swap reduces the time of the fastest exchange most; among equal swaps, the first pair.
 * Returns undefined if no swap saves time. Times are computed with the smooth maximum. A swap never increases such a
 * time, but may slightly increase the time with the exact maximum.
 *
 * Cost: one call of `exchangeSeconds` and one of `swapSeconds`.
 *
 * @throws ArgumentError under the conditions of `swapSeconds`.
 * @example
 * ```ts
 * const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(0, 2, 0, 2, 1, 3, 1, 3) };
 * const line = { startupSeconds: 0, secondsPerByte: 1e-3 };
 * const levels = { numRanks: 2, flat: line, levels: [{ numGroups: 2, between: line, within: line }] };
 * const swap = planExpertSwap(routing, placeInOrder(4, 2), levels, { bytesPerToken: 1000 });
 * console.log(swap?.experts); // [0, 3]
 * ```
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591, HierD-ES.
 */
export const planExpertSwap = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { bytesPerToken, gamma = defaultGamma }: PlanExpertSwapOptions,
): ExpertSwap | undefined => {
  const byLevels = exchangeSeconds(routing, placement, levels, { bytesPerToken, gamma });
  const numLevels = byLevels.indexOf(Math.min(...byLevels)) + 1;
  const seconds = swapSeconds(routing, placement, levels, { bytesPerToken, gamma, numLevels });
  const { numExperts } = placement;
  const before = seconds[0]!;
  let [best, least] = [0, before * (1 - roundingGain)];
  for (let pair = 0; pair < seconds.length; pair++) if (seconds[pair]! < least) [best, least] = [pair, seconds[pair]!];
  if (best === 0) return undefined;
  return {
    experts: [Math.floor(best / numExperts), best % numExperts],
    numLevels,
    secondsBefore: before,
    secondsAfter: least,
  };
};

/** Options for choosing swaps, and the maximum number of swaps. */
export interface SwapExpertsOptions extends PlanExpertSwapOptions {
  readonly maxSwaps: number;
}

/**
 * Swaps the best pair of experts repeatedly, until no swap saves time or `maxSwaps` is reached.
 *
 * @returns the placement after all swaps, and the swaps in order.
 * @throws ArgumentError under the conditions of `planExpertSwap`, and if `maxSwaps` is not a non-negative integer.
 * @example
 * ```ts
 * const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(0, 2, 0, 2, 1, 3, 1, 3) };
 * const line = { startupSeconds: 0, secondsPerByte: 1e-3 };
 * const levels = { numRanks: 2, flat: line, levels: [{ numGroups: 2, between: line, within: line }] };
 * const { placement } = swapExperts(routing, placeInOrder(4, 2), levels, { bytesPerToken: 1000, maxSwaps: 4 });
 * console.log(placement.expertOfSlot); // [3, 1, 2, 0]
 * ```
 */
export const swapExperts = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { maxSwaps, ...options }: SwapExpertsOptions,
): { readonly placement: ExpertPlacement; readonly swaps: readonly ExpertSwap[] } => {
  if (!Number.isInteger(maxSwaps) || maxSwaps < 0)
    throw new ArgumentError(`swapExperts: maxSwaps is ${maxSwaps}; use a whole number from 0`);
  const swaps: ExpertSwap[] = [];
  let current = placement;
  while (swaps.length < maxSwaps) {
    const swap = planExpertSwap(routing, current, levels, options);
    if (swap === undefined) break;
    swaps.push(swap);
    current = withExpertsSwapped(current, ...swap.experts);
  }
  return { placement: current, swaps };
};
