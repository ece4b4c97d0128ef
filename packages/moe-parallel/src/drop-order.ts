// Shapes: T tokens of this rank, K choices per token, N = T·K entries; entry t·K + k is choice k of token t.
import {
  add,
  arange,
  argsort,
  constant,
  multiply,
  reduceMax,
  reshape,
  stopGradient,
  type Tensor,
  transpose,
  uniform,
} from "@skein/tensor-core";
import { type ExpertChoices, type GateContext, requireKey } from "./gates/gate.ts";

/**
 * Function that returns the order in which entries get slots: i32 [N], all entries, highest priority first. If an
 * expert has fewer slots than entries, the last entries are dropped.
 */
export type DropOrder = (choices: ExpertChoices, context: Pick<GateContext, "train" | "key">) => Tensor;

const sizesOf = ({ choices_TK }: ExpertChoices): [numTokens: number, numChoices: number] =>
  choices_TK.shape as [number, number];

/**
 * Order by token: all choices of the first token, then all choices of the second token, …
 * @example
 * ```ts
 * const rule = capacityByFactor({ factor: 1, dropOrder: byToken });
 * console.log(rule({ numTokens: 64, numExperts: 8, numChoices: 1 }).overflow); // drop
 * ```
 */
export const byToken: DropOrder = (choices) => {
  const [numTokens, numChoices] = sizesOf(choices);
  return arange(numTokens * numChoices);
};

/** Returns the first choices of the tokens in the given order, then their second choices, … */
const choiceByChoice = (tokens_T: Tensor, numChoices: number): Tensor => {
  const numTokens = tokens_T.shape[0]!;
  const entries_TK = add(multiply(reshape(tokens_T, [numTokens, 1]), numChoices), reshape(arange(numChoices), [1, -1]));
  return reshape(transpose(entries_TK, [1, 0]), [-1]);
};

/**
 * Order by choice: first choices of all tokens in token order, then second choices, …
 *
 * @example
 * ```ts
 * const rule = capacityByFactor({ factor: 1, dropOrder: byChoice });
 * console.log(rule({ numTokens: 64, numExperts: 8, numChoices: 2 }).overflow); // drop
 * ```
 */
export const byChoice: DropOrder = (choices) => {
  const [numTokens, numChoices] = sizesOf(choices);
  return choiceByChoice(arange(numTokens), numChoices);
};

/**
 * Order by weight, largest first; ties in token order.
 *
 * @example
 * ```ts
 * const rule = capacityByFactor({ factor: 1, dropOrder: byProbability });
 * console.log(rule({ numTokens: 64, numExperts: 8, numChoices: 1 }).dropOrder === byProbability); // true
 * ```
 */
export const byProbability: DropOrder = ({ weights_TK }) =>
  argsort(stopGradient(reshape(weights_TK, [-1])), { descending: true });

/**
 * Order like `byChoice`, but with tokens sorted by their largest weight; ties in token order.
 * @example
 * ```ts
 * const rule = capacityByFactor({ factor: 1, dropOrder: byBatchPriority });
 * console.log(rule({ numTokens: 64, numExperts: 8, numChoices: 2 }).overflow); // drop
 * ```
 * Source: Riquelme et al. 2021 (batch prioritized routing), arXiv 2106.05974.
 */
export const byBatchPriority: DropOrder = (choices) => {
  const greatest_T = reduceMax(stopGradient(choices.weights_TK), { dims: -1 });
  return choiceByChoice(argsort(greatest_T, { descending: true }), sizesOf(choices)[1]);
};

/** Fixed key for runs without a step key. */
const fixedKey = [0, 0];

/**
 * Order like `byChoice`, but with tokens in random order. In training, the order depends on the step's key. Outside
 * training, the order depends on the context's key; without a key, on a fixed key.
 * @example
 * ```ts
 * const rule = capacityByFactor({ factor: 1, dropOrder: byRandomOrder });
 * console.log(rule({ numTokens: 64, numExperts: 8, numChoices: 1 }).overflow); // drop
 * ```
 */
export const byRandomOrder: DropOrder = (choices, context) => {
  const [numTokens, numChoices] = sizesOf(choices);
  const key = context.train ? requireKey("byRandomOrder", context) : (context.key ?? constant(fixedKey, "u32"));
  return choiceByChoice(argsort(uniform(key, [numTokens])), numChoices);
};
