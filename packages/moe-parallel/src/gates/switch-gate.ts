// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import { ArgumentError, type EmptyState, matmul, multiply, softmax, uniform } from "@skein/tensor-core";
import { defineGate, type Gate, requireKey } from "./gate.ts";
import {
  checkTopKRouter,
  chooseGreatest,
  initRouter,
  type RouterOptions,
  type RouterParams,
  scoresOfChoices,
} from "./router.ts";

export interface SwitchGateOptions extends RouterOptions {
  /** K, number of experts per token. Default: 1. */
  readonly numChoices?: number;
  /**
   * Jitter: in training, the router's input is multiplied by uniform random numbers from 1 − jitter to 1 + jitter.
   * Default: 0; the paper uses 0.01.
   */
  readonly jitter?: number;
}

/**
 * Switch gate: routes each token to its K most probable experts, by default to one, and weights their outputs by the
 * probabilities `p = softmax(x W)`. The softmax includes all experts. With a softmax over the chosen experts only, a
 * single choice would have weight 1, and no gradient would reach the router.
 *
 * Cost: `2·T·D·E` flops.
 * @throws ArgumentError if a size is not a positive integer, or the jitter is outside [0, 1).
 * @example
 * ```ts
 * const gate = switchGate({ width: 4, numExperts: 8, losses: [balanceLoss(), zLoss()] });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(params.weight_DE.shape); // [4, 8]
 * ```
 * Source: Fedus, Zoph and Shazeer 2021 (Switch Transformers), arXiv 2101.03961. With two choices, and weights that the
 * layer normalizes, equals the routers of Tutel and DeepSpeed.
 */
export const switchGate = (options: SwitchGateOptions): Gate<RouterParams, EmptyState> => {
  const { jitter = 0, numChoices = 1 } = options;
  checkTopKRouter("switchGate", { ...options, numChoices });
  if (!(jitter >= 0 && jitter < 1))
    throw new ArgumentError(
      `switchGate: jitter is ${String(jitter)}; use a number from 0 to below 1, for example 0.01`,
    );
  return defineGate({
    name: "switchGate",
    ...options,
    init: (key) => ({ params: initRouter(key, options), state: {} }),
    route: ({ weight_DE }, _, x_TD, context) => {
      const jittered_TD =
        context.train && jitter > 0
          ? multiply(
              x_TD,
              uniform(requireKey("switchGate", context), x_TD.shape, { low: 1 - jitter, high: 1 + jitter }),
            )
          : x_TD;
      const logits_TE = matmul(jittered_TD, weight_DE);
      const probabilities_TE = softmax(logits_TE);
      // Uses logits, because probabilities of very unlikely experts round to 0.
      const choices_TK = chooseGreatest(logits_TE, numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: scoresOfChoices(probabilities_TE, choices_TK) },
        scores: { logits_TE, probabilities_TE },
      };
    },
  });
};
