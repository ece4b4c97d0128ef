// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import { divide, type EmptyState, matmul, sigmoid, sum, type Tensor } from "@skein/tensor-core";
import { defineGate, type Gate } from "./gate.ts";
import {
  checkTopKRouter,
  chooseGreatest,
  initRouter,
  type RouterParams,
  scoresOfChoices,
  type TopKRouterOptions,
} from "./router.ts";

/** Normalizes each row of positive scores to sum 1. */
export const normalizeRows = (scores_TE: Tensor): Tensor =>
  divide(scores_TE, sum(scores_TE, { dims: -1, keepDims: true }));

/**
 * Gate that routes each token to the K experts with the greatest scores. The weight of an expert is the sigmoid of its
 * score, so the weights of a token may sum to more than 1.
 *
 * Cost: `2·T·D·E` flops.
 * @example
 * ```ts
 * const gate = sigmoidGate({ width: 4, numExperts: 8, numChoices: 2 });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(params.weight_DE.shape); // [4, 8]
 * ```
 * Source: Lewis et al. 2021 (BASE layers), arXiv 2103.16716; Dai et al. 2022 (StableMoE), arXiv 2204.08396.
 */
export const sigmoidGate = (options: TopKRouterOptions): Gate<RouterParams, EmptyState> => {
  checkTopKRouter("sigmoidGate", options);
  return defineGate({
    name: "sigmoidGate",
    ...options,
    init: (key) => ({ params: initRouter(key, options), state: {} }),
    route: ({ weight_DE }, _, x_TD) => {
      const logits_TE = matmul(x_TD, weight_DE);
      const scores_TE = sigmoid(logits_TE);
      // Uses logits, because sigmoids of many large logits round to 1.
      const choices_TK = chooseGreatest(logits_TE, options.numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: scoresOfChoices(scores_TE, choices_TK) },
        scores: { logits_TE, probabilities_TE: normalizeRows(scores_TE) },
      };
    },
  });
};
