// Symbols: T tokens of a rank, E experts, K choices of a token, C slots of an expert, f capacity factor.
import { ArgumentError } from "@skein/tensor-core";
import { byChoice, type DropOrder } from "./drop-order.ts";
import { checkCounts, checkPositive } from "./options.ts";

export interface CapacitySizes {
  /** T */
  readonly numTokens: number;
  /** E, of all ranks. */
  readonly numExperts: number;
  /** K */
  readonly numChoices: number;
}

/** How many tokens of one rank an expert takes, and what becomes of the others. */
export interface Capacity {
  /** C, a number of the graph: it cannot depend on the data. */
  readonly slots: number;
  /** `refuse`: the output is NaN where one entry has no slot, so that the step stops at its check for such values. */
  readonly overflow: "drop" | "refuse";
  readonly dropOrder: DropOrder;
}

/** How many tokens an expert takes, from the sizes of a layer. */
export type CapacityRule = (sizes: CapacitySizes) => Capacity;

/** Where a fraction of a slot is rounded. */
export type CapacityRounding = "slots-up" | "choices-down" | "tokens-up";

export interface CapacityByFactorOptions {
  /** f: 1 gives as many slots as there are choices, if all experts are chosen alike. */
  readonly factor: number;
  /**
   * `slots-up`: ⌈f·K·T/E⌉, the default. `choices-down`: K·⌊f·⌈T/E⌉⌋. `tokens-up`: ⌊K·⌈f·T⌉/E⌋.
   */
  readonly rounding?: CapacityRounding;
  /** Fewest slots. Default: 1. */
  readonly minimum?: number;
  /** Round up to a multiple, such as the number of parts in which slots travel. Default: 1. */
  readonly multipleOf?: number;
  /** Who gets a slot first. Default: `byChoice`. */
  readonly dropOrder?: DropOrder;
}

// 1.1 · 10 is 11.000000000000002 in floating point: without some slack a factor would give a slot too many, or one too
// few.
const slack = 1e-9;
const up = (x: number): number => Math.ceil(x - slack);
const down = (x: number): number => Math.floor(x + slack);

const roundings: Readonly<Record<CapacityRounding, (factor: number, sizes: CapacitySizes) => number>> = {
  "slots-up": (f, { numTokens, numExperts, numChoices }) => up((f * numChoices * numTokens) / numExperts),
  "choices-down": (f, { numTokens, numExperts, numChoices }) =>
    numChoices * down(f * Math.ceil(numTokens / numExperts)),
  "tokens-up": (f, { numTokens, numExperts, numChoices }) => down((numChoices * up(f * numTokens)) / numExperts),
};

/**
 * Slots of an expert by a factor of its fair share; what finds none is dropped, and its token keeps what its other
 * choices give (in a residual branch: itself).
 *
 * A token takes an expert at most once, so there are never more slots than tokens, before they are rounded to a
 * multiple.
 *
 * @throws ArgumentError for a factor that is not positive and finite, and sizes that are not whole numbers from 1.
 * @example capacityByFactor({ factor: 1.25, dropOrder: byProbability })
 */
export const capacityByFactor = (options: CapacityByFactorOptions): CapacityRule => {
  const { factor, rounding = "slots-up", minimum = 1, multipleOf = 1, dropOrder = byChoice } = options;
  checkPositive("capacityByFactor", "factor", factor, 1.25);
  checkCounts("capacityByFactor", { minimum, multipleOf });
  if (!Object.hasOwn(roundings, rounding))
    throw new ArgumentError(
      `capacityByFactor: there is no rounding ${String(rounding)}; use ${Object.keys(roundings).join(", ")}`,
    );
  return (sizes) => {
    const wanted = Math.max(minimum, roundings[rounding](factor, sizes));
    const slots = Math.ceil(Math.min(wanted, sizes.numTokens) / multipleOf) * multipleOf;
    return { slots, overflow: "drop", dropOrder };
  };
};

export interface CapacityByMaximumOptions {
  /** Most tokens of a rank that an expert may get. Default: all of them, which is never exceeded. */
  readonly bound?: number;
}

/**
 * Slots for the greatest load of an expert on a rank, so that nothing is dropped. Sizes of a graph are fixed, so the
 * load has a bound; where a run exceeds it, the output is NaN and the step stops, while the figures tell the load that
 * a bound must hold. Slots that are not used travel only with the dense dispatcher.
 *
 * @throws ArgumentError for a bound that is no whole number from 1.
 * @example capacityByMaximum({ bound: 512 })
 */
export const capacityByMaximum = ({ bound = Infinity }: CapacityByMaximumOptions = {}): CapacityRule => {
  if (bound !== Infinity) checkCounts("capacityByMaximum", { bound });
  return ({ numTokens }) => ({ slots: Math.min(bound, numTokens), overflow: "refuse", dropOrder: byChoice });
};
