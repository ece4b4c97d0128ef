// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import { add, gather, iota, multiply, normal, reshape, type Tensor, topK } from "@skein/tensor-core";
import { checkCounts, checkNumChoices } from "../options.ts";
import type { AuxiliaryLoss } from "../losses/auxiliary-loss.ts";

export interface RouterOptions {
  /** D, width of a token. */
  readonly width: number;
  /** E, number of experts on all ranks. */
  readonly numExperts: number;
  /** Auxiliary losses. The gate's loss is their sum. Default: none. */
  readonly losses?: readonly AuxiliaryLoss[];
}

/** Parameters of a linear router. */
export interface RouterParams {
  readonly weight_DE: Tensor;
}

export interface TopKRouterOptions extends RouterOptions {
  /** K, number of experts per token. */
  readonly numChoices: number;
}

export const checkRouter = (fn: string, { width, numExperts }: RouterOptions): void =>
  checkCounts(fn, { width, numExperts });

export const checkTopKRouter = (fn: string, options: TopKRouterOptions): void => {
  checkRouter(fn, options);
  checkNumChoices(fn, options.numChoices, options.numExperts);
};

/**
 * Returns initial parameters of a linear router: normal with standard deviation 0.02, like the matrices of `gpt`. So
 * all experts are about equally likely at the start.
 */
export const initRouter = (key: Tensor, { width, numExperts }: RouterOptions): RouterParams => ({
  weight_DE: normal(key, [width, numExperts], { deviation: 0.02 }),
});

/**
 * Returns the indices of each token's K greatest scores, i32 [T, K]. Among equal scores, the lower expert index comes
 * first.
 */
export const chooseGreatest = (scores_TE: Tensor, numChoices: number): Tensor => topK(scores_TE, numChoices)[1];

/** Returns the scores of the chosen experts, f32 [T, K]. Gradients reach only these scores. */
export const scoresOfChoices = (scores_TE: Tensor, choices_TK: Tensor): Tensor => {
  const [numTokens, numExperts] = scores_TE.shape as [number, number];
  const firstOfToken_TK = multiply(iota(choices_TK.shape, "i32", { dim: 0 }), numExperts);
  return gather(reshape(scores_TE, [numTokens * numExperts]), add(firstOfToken_TK, choices_TK));
};
