// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import {
  add,
  ArgumentError,
  type EmptyState,
  fullLike,
  matmul,
  multiply,
  normal,
  softmax,
  softplus,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import { checkPositive } from "../options.ts";
import { defineGate, type Gate, requireKey } from "./gate.ts";
import {
  checkTopKRouter,
  chooseGreatest,
  initRouter,
  type RouterParams,
  scoresOfChoices,
  type TopKRouterOptions,
} from "./router.ts";

export interface NoisyTopKGateOptions extends TopKRouterOptions {
  /**
   * Standard deviation of the noise added to scores in training: "learned" per token and expert, `softplus(x W')`; a
   * constant number, such as 1 / E; or "none". Default: "learned".
   */
  readonly noise?: "learned" | "none" | number;
}

export interface NoisyTopKParams extends RouterParams {
  /** Parameters of the noise. Present only with learned noise. */
  readonly noise_DE?: Tensor;
}

/**
 * Noisy top-k gate: routes each token to the K experts with the greatest noisy scores. Weights are the softmax over
 * these K scores, so they sum to 1 per token.
 *
 * Cost: `2·T·D·E` flops; twice that with learned noise.
 * @throws ArgumentError if there is a single choice: its weight would always be 1, and no gradient would reach the
 * router.
 * @example
 * ```ts
 * const gate = noisyTopKGate({ width: 4, numExperts: 8, numChoices: 2, losses: [importanceLoadLoss()] });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(Object.keys(params)); // ['noise_DE', 'weight_DE']
 * ```
 * Source: Shazeer et al. 2017, arXiv 1701.06538, eq. 3 to 5; Lepikhin et al. 2020 (GShard), arXiv 2006.16668.
 */
export const noisyTopKGate = (options: NoisyTopKGateOptions): Gate<NoisyTopKParams, EmptyState> => {
  checkTopKRouter("noisyTopKGate", options);
  const { width, numExperts, numChoices, noise = "learned" } = options;
  if (numChoices === 1)
    throw new ArgumentError(
      "noisyTopKGate: with 1 choice, the softmax over the chosen experts is always 1, and no gradient reaches the router; use switchGate, or 2 choices or more",
    );
  if (noise !== "learned" && noise !== "none") checkPositive("noisyTopKGate", "noise", noise, 1 / numExperts);
  const deviationOf = ({ noise_DE }: NoisyTopKParams, x_TD: Tensor, logits_TE: Tensor): Tensor =>
    noise_DE === undefined ? fullLike(logits_TE, noise as number) : softplus(matmul(x_TD, noise_DE));
  return defineGate({
    name: "noisyTopKGate",
    ...options,
    init: (key) => ({
      // Initial standard deviation of all scores: softplus(0) = 0.69, as in the paper.
      params: { ...initRouter(key, options), ...(noise === "learned" && { noise_DE: zeros([width, numExperts]) }) },
      state: {},
    }),
    route: (params, _, x_TD, context) => {
      const logits_TE = matmul(x_TD, params.weight_DE);
      const probabilities_TE = softmax(logits_TE);
      const isNoisy = context.train && noise !== "none";
      const deviation_TE = isNoisy ? deviationOf(params, x_TD, logits_TE) : undefined;
      const noisy_TE =
        deviation_TE === undefined
          ? logits_TE
          : add(logits_TE, multiply(normal(requireKey("noisyTopKGate", context), logits_TE.shape), deviation_TE));
      const choices_TK = chooseGreatest(noisy_TE, numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: softmax(scoresOfChoices(noisy_TE, choices_TK)) },
        scores: {
          logits_TE,
          probabilities_TE,
          ...(deviation_TE !== undefined && { noise: { noisy_TE, deviation_TE } }),
        },
      };
    },
  });
};
