import { ArgumentError } from "@skein/tensor-core";
import type { Routing } from "../routing/routing.ts";
import type { ExchangeLevels } from "./exchange-levels.ts";
import { exchangeSeconds } from "./exchange-seconds.ts";
import { withSwapped, type ExpertPlacement } from "./expert-placement.ts";
import { defaultGamma } from "./smooth-maximum.ts";
import { swapSeconds } from "./swap-seconds.ts";

/** Relative gain below which two sums of the same terms may differ by their order alone. */
const roundingGain = 1e-12;

/** Two experts that change places, and what an exchange takes before and after. */
export interface ExpertSwap {
  /** The two experts that change places, the lower first. */
  readonly experts: readonly [number, number];
  /** d of the exchange that the swap was chosen for: the fastest before it. */
  readonly numLevels: number;
  /** t(d) with the smooth maximum. */
  readonly secondsBefore: number;
  readonly secondsAfter: number;
}

export interface ChooseSwapOptions {
  /** What one token weighs on the way: model width times bytes per number. */
  readonly bytesPerToken: number;
  /** γ of the smooth maximum, finite. Default: 10. */
  readonly gamma?: number;
}

/**
 * Find the two experts whose swap saves most of the fastest exchange of tokens, of equal ones the first; undefined
 * where none saves anything. Times are those of the smooth maximum: a swap never makes them longer, but it may add a
 * little to the plain maximum.
 *
 * Cost: as `exchangeSeconds` and `swapSeconds`.
 *
 * @throws ArgumentError as `swapSeconds`.
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591, HierD-ES.
 */
export const chooseSwap = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { bytesPerToken, gamma = defaultGamma }: ChooseSwapOptions,
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

/** What swaps are chosen by, and how many there may be. */
export interface SwapExpertsOptions extends ChooseSwapOptions {
  readonly maxSwaps: number;
}

/**
 * Swap experts again and again, each time the best pair, until none saves anything or there have been `maxSwaps`.
 *
 * @returns the placement after all swaps, and the swaps in order.
 * @throws ArgumentError as `chooseSwap`, and for a number of swaps that is none.
 */
export const swapExperts = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { maxSwaps, ...options }: SwapExpertsOptions,
): { readonly placement: ExpertPlacement; readonly swaps: readonly ExpertSwap[] } => {
  if (!Number.isInteger(maxSwaps) || maxSwaps < 0)
    throw new ArgumentError(`swapExperts: maxSwaps is ${maxSwaps}; give a whole number from 0`);
  const swaps: ExpertSwap[] = [];
  let current = placement;
  while (swaps.length < maxSwaps) {
    const swap = chooseSwap(routing, current, levels, options);
    if (swap === undefined) break;
    swaps.push(swap);
    current = withSwapped(current, ...swap.experts);
  }
  return { placement: current, swaps };
};
