// Shapes: T tokens of this rank, E experts, K choices per token, N = T·K entries (entry t·K + k is choice k of token
// t), C slots per expert.
import {
  add,
  arange,
  argsort,
  cumsum,
  divide,
  full,
  gather,
  less,
  logicalAnd,
  maximum,
  minimum,
  reduceMax,
  reshape,
  scatterAdd,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import type { Capacity } from "./capacity.ts";
import type { ExpertChoices, GateContext } from "./gates/gate.ts";
import { countPerExpert } from "./load.ts";

/** Whether a token's weights are divided by their sum, and if so, before or after entries are dropped. */
export type WeightNormalisation = "before-dropping" | "after-dropping" | "none";

/** Assignment of choices to expert slots. The dispatcher decides how tokens are sent to the slots. */
export interface Order {
  /** Expert of each entry, i32; −1 for an entry without a slot. */
  readonly experts_TK: Tensor;
  /**
   * Slot of each entry at its expert, i32; −1 for an entry without a slot. The slots of an expert are 0, 1, … without
   * gaps.
   */
  readonly slots_TK: Tensor;
  /** Weight of the expert's output for each entry, f32; 0 for an entry without a slot. */
  readonly weights_TK: Tensor;
  /** Number of entries with a slot, per expert, i32. */
  readonly kept_E: Tensor;
  /** Largest number of entries for one expert, including entries without a slot, i32 []. */
  readonly greatestLoad: Tensor;
}

/** Settings of `orderTokens`. */
export interface OrderOptions {
  readonly numExperts: number;
  readonly capacity: Capacity;
  readonly normalisation: WeightNormalisation;
  readonly context: Pick<GateContext, "train" | "key">;
}

/** Lower bound on the sum of a token's weights, so that quotients stay finite. */
const minSum = 2 ** -60;

const normalised = (weights_TK: Tensor): Tensor =>
  divide(weights_TK, maximum(sum(weights_TK, { dims: -1, keepDims: true }), minSum));

/**
 * Groups tokens by expert with a counting sort. A histogram gives the number of entries per expert. Its cumulative sum
 * gives the first index of each expert. A stable sort gives the index of each entry. Entries above the capacity get no
 * slot.
 *
 * @param choices choices, with experts numbered in placement order.
 * Cost: at most two radix sorts of N numbers (one sort for orders by token or choice), and a few passes over N numbers.
 */
export const orderTokens = (choices: ExpertChoices, options: OrderOptions): Order => {
  const { numExperts, capacity, normalisation, context } = options;
  const { choices_TK, weights_TK } = choices;
  const [numTokens, numChoices] = choices_TK.shape as [number, number];
  const numEntries = numTokens * numChoices;
  const priority_N = capacity.dropOrder(choices, context);
  const experts_N = gather(reshape(choices_TK, [numEntries]), priority_N);
  // Entries without a choice are sorted last.
  const keys_N = where(less(experts_N, 0), numExperts, experts_N);
  const order_N = argsort(keys_N);
  const entries_N = gather(priority_N, order_N);
  const sorted_N = gather(keys_N, order_N);

  const load_E = countPerExpert(choices_TK, numExperts);
  const first_E = subtract(cumsum(load_E), load_E);
  const slot_N = subtract(arange(numEntries), gather(first_E, sorted_N, { outside: "zero" }));
  const hasSlot_N = logicalAnd(less(slot_N, capacity.slots), less(sorted_N, numExperts));
  const slots_TK = reshape(
    scatterAdd(full([numEntries], -1, "i32"), where(hasSlot_N, entries_N, numEntries), add(slot_N, 1)),
    [numTokens, numChoices],
  );
  const hasNone_TK = less(slots_TK, 0);

  const chosen_TK = where(less(choices_TK, 0), 0, weights_TK);
  const weights = {
    none: () => chosen_TK,
    "before-dropping": () => normalised(chosen_TK),
    "after-dropping": () => normalised(where(hasNone_TK, 0, chosen_TK)),
  }[normalisation]();
  return {
    experts_TK: where(hasNone_TK, -1, choices_TK),
    slots_TK,
    weights_TK: where(hasNone_TK, 0, weights),
    kept_E: minimum(load_E, capacity.slots),
    greatestLoad: reduceMax(load_E),
  };
};
