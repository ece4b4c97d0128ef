// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import {
  add,
  matmul,
  mean,
  multiply,
  sigmoid,
  sign,
  stopGradient,
  subtract,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import { checkPositive } from "../options.ts";
import { defineGate, type Gate } from "./gate.ts";
import {
  checkTopKRouter,
  chooseGreatest,
  initRouter,
  type RouterParams,
  scoresOfChoices,
  type TopKRouterOptions,
} from "./router.ts";
import { normalizeRows } from "./sigmoid-gate.ts";

export interface BalancingBiasGateOptions extends TopKRouterOptions {
  /** Change of a bias per step. Default: 0.001. */
  readonly updateRate?: number;
  /** Sum of a token's weights. Default: 1. */
  readonly weightSum?: number;
}

export interface BalancingBiasState {
  /** Bias that is added to scores only to choose experts, f32. */
  readonly bias_E: Tensor;
}

/**
 * Gate that routes each token to the K experts with the greatest `sigmoid(x W) + b`. Weights are the sigmoids without
 * bias, divided by their sum over the K experts. Instead of an auxiliary loss, the bias of an expert decreases by
 * `updateRate` after each step with a load above the mean, and increases after a step with a load below the mean:
 * `b += updateRate · sign(mean load − load)`. Loads are summed over all ranks, so biases stay equal on all ranks.
 *
 * Cost: `2·T·D·E` flops.
 * @example
 * ```ts
 * const gate = balancingBiasGate({ width: 4, numExperts: 8, numChoices: 2 });
 * const moe = moeLayer({ gate, experts: swigluExperts({ width: 4, hidden: 8 }) });
 * const { state } = await evaluate(moe.init, referenceBackend())(randomKey(1));
 * console.log(Object.keys(state.gate)); // ['bias_E']
 * ```
 * Source: Wang et al. 2024, arXiv 2408.15664; DeepSeek-V3, arXiv 2412.19437, eq. 15 and 16.
 */
export const balancingBiasGate = (options: BalancingBiasGateOptions): Gate<RouterParams, BalancingBiasState> => {
  checkTopKRouter("balancingBiasGate", options);
  const { numExperts, numChoices, updateRate = 1e-3, weightSum = 1 } = options;
  checkPositive("balancingBiasGate", "updateRate", updateRate, 1e-3);
  checkPositive("balancingBiasGate", "weightSum", weightSum, 2.5);
  return defineGate({
    name: "balancingBiasGate",
    ...options,
    init: (key) => ({ params: initRouter(key, options), state: { bias_E: zeros([numExperts]) } }),
    route: ({ weight_DE }, { bias_E }, x_TD) => {
      const logits_TE = matmul(x_TD, weight_DE);
      const scores_TE = sigmoid(logits_TE);
      const choices_TK = chooseGreatest(add(stopGradient(scores_TE), bias_E), numChoices);
      return {
        routing: {
          kind: "choices",
          choices_TK,
          weights_TK: multiply(normalizeRows(scoresOfChoices(scores_TE, choices_TK)), weightSum),
        },
        scores: { logits_TE, probabilities_TE: normalizeRows(scores_TE) },
      };
    },
    update: ({ bias_E }, load_E) => ({
      bias_E: add(bias_E, multiply(sign(subtract(mean(load_E), load_E)), updateRate)),
    }),
  });
};
