// Shapes: T tokens of this rank, E experts, K choices of a token, N = T·K entries (entry t·K + k is choice k of token
// t), C slots of an expert.
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
import type { Choices, GateContext } from "./gates/gate.ts";
import { countPerExpert } from "./load.ts";

/** When the weights of a token are divided by their sum, if at all. */
export type WeightNormalisation = "before-dropping" | "after-dropping" | "none";

/** Which choices found a slot with their experts; how tokens travel to them is the dispatcher's. */
export interface Order {
  /** i32, the expert of each entry; −1 where it has no slot. */
  readonly experts_TK: Tensor;
  /** i32, which slot of its expert an entry has: those of an expert are 0, 1, … without gaps; −1 where it has none. */
  readonly slots_TK: Tensor;
  /** f32, what the output of an entry's expert counts; 0 where it has no slot. */
  readonly weights_TK: Tensor;
  /** i32, entries of each expert that have a slot. */
  readonly kept_E: Tensor;
  /** i32 []: the greatest number of entries of an expert, those without a slot too. */
  readonly greatestLoad: Tensor;
}

/** What tokens are put in order by. */
export interface OrderOptions {
  readonly numExperts: number;
  readonly capacity: Capacity;
  readonly normalisation: WeightNormalisation;
  readonly context: Pick<GateContext, "train" | "key">;
}

/** Below the smallest sum of weights that is told from 0; what is divided by it stays finite. */
const leastSum = 2 ** -60;

const normalised = (weights_TK: Tensor): Tensor =>
  divide(weights_TK, maximum(sum(weights_TK, { dims: -1, keepDims: true }), leastSum));

/**
 * Put the tokens of each expert side by side, by a counting sort: a histogram gives the number of each expert's
 * entries, its running sum where they begin, and a stable sort who stands where. Entries beyond the capacity have no
 * slot.
 *
 * @param choices experts numbered in the order in which they lie on the ranks.
 * Cost: two sorts of N numbers by their digits at most (one by token or choice), and a few passes over N numbers.
 */
export const orderTokens = (choices: Choices, options: OrderOptions): Order => {
  const { numExperts, capacity, normalisation, context } = options;
  const { choices_TK, weights_TK } = choices;
  const [numTokens, numChoices] = choices_TK.shape as [number, number];
  const numEntries = numTokens * numChoices;
  const inLine_N = capacity.dropOrder(choices, context);
  const experts_N = gather(reshape(choices_TK, [numEntries]), inLine_N);
  // What is no choice stands behind all others.
  const keys_N = where(less(experts_N, 0), numExperts, experts_N);
  const order_N = argsort(keys_N);
  const entries_N = gather(inLine_N, order_N);
  const sorted_N = gather(keys_N, order_N);

  const load_E = countPerExpert(choices_TK, numExperts);
  const first_E = subtract(cumsum(load_E), load_E);
  const place_N = subtract(arange(numEntries), gather(first_E, sorted_N, { outside: "zero" }));
  const hasSlot_N = logicalAnd(less(place_N, capacity.slots), less(sorted_N, numExperts));
  const slots_TK = reshape(
    scatterAdd(full([numEntries], -1, "i32"), where(hasSlot_N, entries_N, numEntries), add(place_N, 1)),
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
