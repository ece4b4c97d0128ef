// Shapes: T tokens of this rank, D width of a token, E experts, K choices of a token.
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
  greatest,
  initRouter,
  type RouterParams,
  scoresAt,
  type TopKRouterOptions,
} from "./router.ts";
import { shares } from "./sigmoid-gate.ts";

export interface SinkhornGateOptions extends TopKRouterOptions {
  /**
   * How often rows and columns are normalised. The graph is fixed, so it cannot stop when nothing changes any more.
   * Default: 16.
   */
  readonly numIterations?: number;
}

/**
 * Rows and columns of `exp(logits)` normalised in turn, so that each token adds up to 1, and each expert nearly to T/E
 * tokens; as logarithms, which do not overflow: f32 [T, E].
 *
 * Cost: two passes over T·E numbers an iteration.
 */
export const balanceLogits = (logits_TE: Tensor, numIterations: number): Tensor => {
  let balanced_TE = logits_TE;
  for (let i = 0; i < numIterations; i++) {
    balanced_TE = subtract(balanced_TE, logSumExp(balanced_TE, { dims: 0, keepDims: true }));
    // Tokens last: their sums are then exact, and what experts add up to follows from them.
    balanced_TE = subtract(balanced_TE, logSumExp(balanced_TE, { dims: -1, keepDims: true }));
  }
  return balanced_TE;
};

/**
 * While training each token goes to the K experts of the greatest balanced scores (`balanceLogits`, over the tokens of
 * one rank), otherwise to those of the greatest scores. Weights come from the scores themselves: their sigmoid with one
 * choice, their softmax with several.
 *
 * Cost: `2·T·D·E` flops and the balancing.
 * @throws ArgumentError for sizes that are not whole numbers from 1.
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
      const choices_TK = greatest(ranked_TE, numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: scoresAt(scores_TE, choices_TK) },
        scores: { logits_TE, probabilities_TE: numChoices === 1 ? shares(scores_TE) : scores_TE },
      };
    },
  });
};
