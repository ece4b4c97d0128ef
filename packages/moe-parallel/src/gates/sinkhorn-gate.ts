// Shapes: T tokens of this rank, D token width, E experts, K choices per token.
import {
  type EmptyState,
  logSumExp,
  matmul,
  sigmoid,
  softmax,
  stopGradient,
  subtract,
  type Tensor,
} from "@skein/tensor-core";
import { checkCounts } from "../options.ts";
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

export interface SinkhornGateOptions extends TopKRouterOptions {
  /**
   * Number of normalizations of columns and rows. Constant, because the graph cannot stop at convergence. Default: 16.
   */
  readonly numIterations?: number;
}

/**
 * Sinkhorn normalization: normalizes rows and columns of `exp(logits)` alternately, so that each token sums to 1, and
 * each expert sums to about T/E. Returns logarithms, which do not overflow: f32 [T, E].
 *
 * Cost: two passes over T·E numbers per iteration.
 */
export const balanceLogits = (logits_TE: Tensor, numIterations: number): Tensor => {
  let balanced_TE = logits_TE;
  for (let i = 0; i < numIterations; i++) {
    balanced_TE = subtract(balanced_TE, logSumExp(balanced_TE, { dims: 0, keepDims: true }));
    // Tokens are normalized last, so that their sums are exact.
    balanced_TE = subtract(balanced_TE, logSumExp(balanced_TE, { dims: -1, keepDims: true }));
  }
  return balanced_TE;
};

/**
 * Sinkhorn gate: in training, routes each token to the K experts with the greatest balanced scores (`balanceLogits`,
 * over the tokens of one rank), otherwise to the K experts with the greatest scores. Weights are computed from the
 * unbalanced scores: sigmoid for one choice, softmax for several choices.
 *
 * Cost: `2·T·D·E` flops, plus the balancing.
 * @throws ArgumentError if a size is not a positive integer.
 * @example
 * ```ts
 * const gate = sinkhornGate({ width: 4, numExperts: 8, numChoices: 1 });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(params.weight_DE.shape); // [4, 8]
 * ```
 * Source: Clark et al. 2022 (S-BASE), arXiv 2202.01169; weights as in Megatron-LM.
 */
export const sinkhornGate = (options: SinkhornGateOptions): Gate<RouterParams, EmptyState> => {
  checkTopKRouter("sinkhornGate", options);
  const { numChoices, numIterations = 16 } = options;
  checkCounts("sinkhornGate", { numIterations });
  return defineGate({
    name: "sinkhornGate",
    ...options,
    init: (key) => ({ params: initRouter(key, options), state: {} }),
    route: ({ weight_DE }, _, x_TD, { train }) => {
      const logits_TE = matmul(x_TD, weight_DE);
      const ranked_TE = train ? balanceLogits(stopGradient(logits_TE), numIterations) : logits_TE;
      const scores_TE = numChoices === 1 ? sigmoid(logits_TE) : softmax(logits_TE);
      const choices_TK = chooseGreatest(ranked_TE, numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: scoresOfChoices(scores_TE, choices_TK) },
        scores: { logits_TE, probabilities_TE: numChoices === 1 ? normalizeRows(scores_TE) : scores_TE },
      };
    },
  });
};
