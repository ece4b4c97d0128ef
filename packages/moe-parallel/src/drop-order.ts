// Shapes: T tokens of this rank, K choices of a token, N = T·K entries; entry t·K + k is choice k of token t.
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
import { type Choices, type GateContext, requireKey } from "./gates/gate.ts";

/**
 * Who gets a slot first: i32 [N], all entries, the first in line first. Where an expert has fewer slots than entries,
 * the last of them are dropped.
 */
export type DropOrder = (choices: Choices, context: Pick<GateContext, "train" | "key">) => Tensor;

const sizesOf = ({ choices_TK }: Choices): [numTokens: number, numChoices: number] =>
  choices_TK.shape as [number, number];

/** All choices of the first token, then those of the second, … */
export const byToken: DropOrder = (choices) => {
  const [numTokens, numChoices] = sizesOf(choices);
  return arange(numTokens * numChoices);
};

/** First choices of the tokens in this order, then their second choices, … */
const choiceByChoice = (tokens_T: Tensor, numChoices: number): Tensor => {
  const numTokens = tokens_T.shape[0]!;
  const entries_TK = add(multiply(reshape(tokens_T, [numTokens, 1]), numChoices), reshape(arange(numChoices), [1, -1]));
  return reshape(transpose(entries_TK, [1, 0]), [-1]);
};

/** First choices of all tokens in their order, then second choices, … */
export const byChoice: DropOrder = (choices) => {
  const [numTokens, numChoices] = sizesOf(choices);
  return choiceByChoice(arange(numTokens), numChoices);
};

/** Greatest weights first, ties by token. */
export const byProbability: DropOrder = ({ weights_TK }) =>
  argsort(stopGradient(reshape(weights_TK, [-1])), { descending: true });

/**
 * As `byChoice`, but tokens in the order of their greatest weight, ties by token.
 * Source: Riquelme et al. 2021 (batch prioritized routing), arXiv 2106.05974.
 */
export const byBatchPriority: DropOrder = (choices) => {
  const greatest_T = reduceMax(stopGradient(choices.weights_TK), { dims: -1 });
  return choiceByChoice(argsort(greatest_T, { descending: true }), sizesOf(choices)[1]);
};

/** Where there is no step whose key could be another one. */
const sameEveryTime = [0, 0];

/** As `byChoice`, but tokens in a random order: while training by the key of the step, else the same one every time. */
export const byChance: DropOrder = (choices, context) => {
  const [numTokens, numChoices] = sizesOf(choices);
  const key = context.train ? requireKey("byChance", context) : (context.key ?? constant(sameEveryTime, "u32"));
  return choiceByChoice(argsort(uniform(key, [numTokens])), numChoices);
};
