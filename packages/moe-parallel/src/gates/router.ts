// Shapes: T tokens of this rank, D width of a token, E experts, K choices of a token.
import { add, gather, iota, multiply, normal, reshape, type Tensor, topK } from "@skein/tensor-core";
import { checkCounts, checkNumChoices } from "../options.ts";
import type { AuxiliaryLoss } from "../losses/auxiliary-loss.ts";

export interface RouterOptions {
  /** D */
  readonly width: number;
  /** E, of all ranks together. */
  readonly numExperts: number;
  /** Added up to the gate's loss. Default: none. */
  readonly losses?: readonly AuxiliaryLoss[];
}

/** A linear router. */
export interface RouterParams {
  readonly weight_DE: Tensor;
}

export interface TopKRouterOptions extends RouterOptions {
  /** K, experts of each token. */
  readonly numChoices: number;
}

export const checkRouter = (fn: string, { width, numExperts }: RouterOptions): void =>
  checkCounts(fn, { width, numExperts });

export const checkTopKRouter = (fn: string, options: TopKRouterOptions): void => {
  checkRouter(fn, options);
  checkNumChoices(fn, options.numChoices, options.numExperts);
};

/** Normal with deviation 0.02, as the matrices of `gpt`: small, so that experts start about equally likely. */
export const initRouter = (key: Tensor, { width, numExperts }: RouterOptions): RouterParams => ({
  weight_DE: normal(key, [width, numExperts], { deviation: 0.02 }),
});

/** The K greatest scores of each token, ties to the lower expert: i32 [T, K]. */
export const greatest = (scores_TE: Tensor, numChoices: number): Tensor => topK(scores_TE, numChoices)[1];

/** The scores of what was chosen: f32 [T, K]. Gradients flow to those alone. */
export const scoresAt = (scores_TE: Tensor, choices_TK: Tensor): Tensor => {
  const [numTokens, numExperts] = scores_TE.shape as [number, number];
  const firstOfToken_TK = multiply(iota(choices_TK.shape, "i32", { dim: 0 }), numExperts);
  return gather(reshape(scores_TE, [numTokens * numExperts]), add(firstOfToken_TK, choices_TK));
};
