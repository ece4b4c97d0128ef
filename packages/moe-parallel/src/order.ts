// Shapes: T tokens of this rank, D width of a token, E experts, K choices of a token, N = T·K entries (entry t·K + k is
// choice k of token t), C slots of an expert, R rows in which the tokens leave.
import {
  add,
  arange,
  argsort,
  cumsum,
  divide,
  full,
  gather,
  greater,
  less,
  logicalAnd,
  maximum,
  minimum,
  multiply,
  reduceMax,
  reshape,
  scatterAdd,
  subtract,
  sum,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";
import type { Capacity } from "./capacity.ts";
import type { Choices, GateContext } from "./gates/gate.ts";
import { countPerExpert } from "./load.ts";

/** When the weights of a token are divided by their sum, if at all. */
export type WeightNormalisation = "before-dropping" | "after-dropping" | "none";

/** Where the rows of the experts begin; decided by how they travel. */
export interface RowLayout {
  /** R */
  readonly numRows: number;
  /** i32, first row of each expert. */
  readonly firstRow_E: Tensor;
}

/** Rows in which tokens leave, and what brings them back. */
export interface Order {
  /** i32, token of each row; −1 where the row is empty. */
  readonly tokens_R: Tensor;
  /** f32, what the row's output counts; 0 where the row is empty. */
  readonly weights_R: Tensor;
  /** i32, entries of each expert that have a row. */
  readonly kept_E: Tensor;
  /** i32 []: the greatest number of entries of an expert, those without a row too. */
  readonly greatestLoad: Tensor;
}

export interface OrderOptions {
  readonly numExperts: number;
  readonly capacity: Capacity;
  readonly normalisation: WeightNormalisation;
  readonly layout: (kept_E: Tensor) => RowLayout;
  readonly context: Pick<GateContext, "key">;
}

/** Below the smallest sum of weights that is told from 0; what is divided by it stays finite. */
const leastSum = 2 ** -60;

const normalised = (weights_TK: Tensor): Tensor =>
  divide(weights_TK, maximum(sum(weights_TK, { dims: -1, keepDims: true }), leastSum));

/**
 * Put the tokens of each expert side by side, by a counting sort: a histogram gives the number of each expert's
 * entries, its running sum where they begin, and a stable sort who stands where. Entries beyond the capacity have no
 * row.
 *
 * @param choices experts numbered in the order in which rows leave.
 * Cost: two sorts of N numbers by their digits at most (one by token or choice), and a few passes over N and R numbers.
 */
export const orderTokens = (choices: Choices, options: OrderOptions): Order => {
  const { numExperts, capacity, normalisation, layout, context } = options;
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
  const hasRow_N = logicalAnd(less(place_N, capacity.slots), less(sorted_N, numExperts));
  const kept_E = minimum(load_E, capacity.slots);
  const { numRows, firstRow_E } = layout(kept_E);
  const rows_N = where(hasRow_N, add(gather(firstRow_E, sorted_N, { outside: "zero" }), place_N), numRows);
  const entries_R = scatterAdd(full([numRows], -1, "i32"), rows_N, add(entries_N, 1));

  const chosen_TK = where(less(choices_TK, 0), 0, weights_TK);
  const flat = (own_TK: Tensor): Tensor => reshape(own_TK, [numEntries]);
  const weights = {
    none: () => chosen_TK,
    "before-dropping": () => normalised(chosen_TK),
    "after-dropping": () => {
      const hasRow = scatterAdd(zeros([numEntries]), entries_R, full([numRows], 1));
      return normalised(where(greater(reshape(hasRow, [numTokens, numChoices]), 0), chosen_TK, 0));
    },
  }[normalisation]();
  return {
    tokens_R: where(less(entries_R, 0), -1, divide(entries_R, numChoices)),
    weights_R: gather(flat(weights), entries_R, { outside: "zero" }),
    kept_E,
    greatestLoad: reduceMax(load_E),
  };
};

/** Rows of the experts: f32 [R, D], zeros where a row is empty. */
export const toRows = (x_TD: Tensor, { tokens_R }: Order): Tensor => gather(x_TD, tokens_R, { outside: "zero" });

/**
 * The inverse order: of each token the weighted sum of its rows, f32 [T, D], 0 where it has none. Rows are added in
 * their own order, so that the same input gives the same bits.
 */
export const fromRows = (y_RD: Tensor, { tokens_R, weights_R }: Order, numTokens: number): Tensor =>
  scatterAdd(zeros([numTokens, y_RD.shape[1]!]), tokens_R, multiply(y_RD, reshape(weights_R, [-1, 1])));
