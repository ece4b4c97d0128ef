// Symbols: T tokens per rank, E experts, K choices per token, C slots per expert, f capacity factor.
import { ArgumentError } from "@skein/tensor-core";
import { byChoice, type DropOrder } from "./drop-order.ts";
import { checkCounts, checkPositive } from "./options.ts";

export interface CapacitySizes {
  /** T, number of tokens per rank. */
  readonly numTokens: number;
  /** E, number of experts on all ranks. */
  readonly numExperts: number;
  /** K, number of choices per token. */
  readonly numChoices: number;
}

/** Capacity of an expert for one rank's tokens, and treatment of tokens above the capacity. */
export interface Capacity {
  /** C, number of slots per expert. A constant of the graph: it cannot depend on the data. */
  readonly slots: number;
  /**
   * Treatment of entries (a token's choices) without a slot. `drop`: skip the entry. `refuse`: the output becomes NaN,
   * so that the step's check for non-finite values stops the run.
   */
  readonly overflow: "drop" | "refuse";
  readonly dropOrder: DropOrder;
}

/** Function that returns the capacity per expert for the sizes of a layer. */
export type CapacityRule = (sizes: CapacitySizes) => Capacity;

/** Rounding rule that makes the number of slots per expert an integer; see `CapacityByFactorOptions.rounding`. */
export type CapacityRounding = "slots-up" | "choices-down" | "tokens-up";

export interface CapacityByFactorOptions {
  /**
   * Capacity factor f. With f = 1, all experts together have as many slots as there are choices. These slots are enough
   * if all experts are chosen equally often.
   */
  readonly factor: number;
  /**
   * Formula for C. `slots-up`: ⌈f·K·T/E⌉. `choices-down`: K·⌊f·⌈T/E⌉⌋. `tokens-up`: ⌊K·⌈f·T⌉/E⌋. Default: `slots-up`.
   */
  readonly rounding?: CapacityRounding;
  /** Minimum number of slots. Default: 1. */
  readonly minimum?: number;
  /**
   * Slots are rounded up to a multiple of this number, such as the number of chunks in which slots are sent. Default:
   * 1.
   */
  readonly multipleOf?: number;
  /** Order in which entries get slots. Default: `byChoice`. */
  readonly dropOrder?: DropOrder;
}

// 1.1 · 10 is 11.000000000000002 in floating point. Without a tolerance, rounding would give one slot too many or too
// few.
const slack = 1e-9;
const roundUp = (x: number): number => Math.ceil(x - slack);
const roundDown = (x: number): number => Math.floor(x + slack);

const roundings: Readonly<Record<CapacityRounding, (factor: number, sizes: CapacitySizes) => number>> = {
  "slots-up": (f, { numTokens, numExperts, numChoices }) => roundUp((f * numChoices * numTokens) / numExperts),
  "choices-down": (f, { numTokens, numExperts, numChoices }) =>
    numChoices * roundDown(f * Math.ceil(numTokens / numExperts)),
  "tokens-up": (f, { numTokens, numExperts, numChoices }) =>
    roundDown((numChoices * roundUp(f * numTokens)) / numExperts),
};

/**
 * Returns a rule that computes an expert's slots from a capacity factor. Entries without a slot are dropped. Their
 * tokens still get the outputs of their other choices, and in a residual branch also the token itself.
 *
 * A token chooses an expert at most once. Therefore, before rounding to a multiple, an expert never has more slots than
 * there are tokens.
 *
 * @throws ArgumentError if the factor is not positive and finite, or a size is not a positive integer.
 * @example
 * ```ts
 * const capacity = capacityByFactor({ factor: 1.25, dropOrder: byProbability });
 * console.log(capacity({ numTokens: 64, numExperts: 8, numChoices: 2 }).slots); // 20
 * ```
 */
export const capacityByFactor = (options: CapacityByFactorOptions): CapacityRule => {
  const { factor, rounding = "slots-up", minimum = 1, multipleOf = 1, dropOrder = byChoice } = options;
  checkPositive("capacityByFactor", "factor", factor, 1.25);
  checkCounts("capacityByFactor", { minimum, multipleOf });
  if (!Object.hasOwn(roundings, rounding))
    throw new ArgumentError(
      `capacityByFactor: rounding is ${String(rounding)}; use ${Object.keys(roundings).join(", ")}`,
    );
  return (sizes) => {
    const requested = Math.max(minimum, roundings[rounding](factor, sizes));
    const slots = Math.ceil(Math.min(requested, sizes.numTokens) / multipleOf) * multipleOf;
    return { slots, overflow: "drop", dropOrder };
  };
};

export interface CapacityByMaximumOptions {
  /** Maximum number of tokens per rank and expert. Default: all tokens of the rank, which cannot be exceeded. */
  readonly bound?: number;
}

/**
 * Returns a rule with enough slots for the maximum load of an expert, so that no entry is dropped. Sizes in a graph are
 * constant, so the load needs a bound. If a load exceeds the bound, the output is NaN, so that the step's check for
 * non-finite values stops the run. The layer reports the smallest sufficient bound as `greatestLoad`. Only the dense
 * dispatcher sends unused slots.
 *
 * @throws ArgumentError if the bound is not a positive integer.
 * @example
 * ```ts
 * const capacity = capacityByMaximum({ bound: 512 });
 * const { slots, overflow } = capacity({ numTokens: 64, numExperts: 8, numChoices: 2 });
 * console.log(slots, overflow); // 64 refuse
 * ```
 */
export const capacityByMaximum = ({ bound = Infinity }: CapacityByMaximumOptions = {}): CapacityRule => {
  if (bound !== Infinity) checkCounts("capacityByMaximum", { bound });
  return ({ numTokens }) => ({ slots: Math.min(bound, numTokens), overflow: "refuse", dropOrder: byChoice });
};
