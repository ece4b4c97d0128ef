// Shapes: T tokens of this rank, D token width, E experts, K choices per token, J projection width.
import {
  ArgumentError,
  type EmptyState,
  exp,
  foldIn,
  full,
  matmul,
  minimum,
  multiply,
  normal,
  softmax,
  type Tensor,
} from "@skein/tensor-core";
import { checkCounts, checkPositive } from "../options.ts";
import { defineGate, type Gate } from "./gate.ts";
import { checkTopKRouter, chooseGreatest, scoresOfChoices, type TopKRouterOptions } from "./router.ts";
import { unitRows } from "./unit-rows.ts";

export interface CosineGateOptions extends TopKRouterOptions {
  /** J, width of the projection. Default: 256. */
  readonly projection?: number;
  /** Initial value of the learned temperature, by which cosines are divided. Default: 0.5. */
  readonly temperature?: number;
}

/** Parameters of a cosine gate. The suffix of a parameter's name is the shape of the parameter. */
export interface CosineParams {
  readonly projection_DJ: Tensor;
  readonly experts_EJ: Tensor;
  /** Logarithm of 1 / temperature, f32 []. */
  readonly logScale: Tensor;
}

/** Upper bound of the learned log(1 / temperature), so that the temperature is at least 0.01. */
const greatestLogScale = Math.log(100);

/**
 * Gate that routes each token to the K experts whose vectors are closest in direction to the token's projection. Scores
 * are cosines divided by a learned temperature; weights are their softmax over all experts. Vector lengths do not
 * matter, so experts cannot win more tokens by longer vectors.
 *
 * Cost: `2·T·J·(D + E)` flops.
 * @throws ArgumentError if a size is not a positive integer, or the temperature is below 0.01.
 * @example
 * ```ts
 * const gate = cosineGate({ width: 4, numExperts: 8, numChoices: 2 });
 * const { params } = await evaluate(gate.init, referenceBackend())(randomKey(1));
 * console.log(Object.keys(params)); // ['experts_EJ', 'logScale', 'projection_DJ']
 * ```
 * Source: Chi et al. 2022 (X-MoE), arXiv 2204.09179; sizes and temperature as in Tutel's cosine router.
 */
export const cosineGate = (options: CosineGateOptions): Gate<CosineParams, EmptyState> => {
  checkTopKRouter("cosineGate", options);
  const { width, numExperts, numChoices, projection = 256, temperature = 0.5 } = options;
  checkCounts("cosineGate", { projection });
  checkPositive("cosineGate", "temperature", temperature, 0.5);
  if (temperature < 0.01)
    throw new ArgumentError(
      `cosineGate: temperature is ${temperature}, but the learned temperature is limited to at least 0.01; use 0.01 or more`,
    );
  return defineGate({
    name: "cosineGate",
    ...options,
    init: (key) => ({
      params: {
        projection_DJ: normal(foldIn(key, 0), [width, projection], { deviation: 1 / Math.sqrt(width) }),
        experts_EJ: normal(foldIn(key, 1), [numExperts, projection], { deviation: 0.01 }),
        logScale: full([], Math.log(1 / temperature)),
      },
      state: {},
    }),
    route: ({ projection_DJ, experts_EJ, logScale }, _, x_TD) => {
      const cosines_TE = matmul(unitRows(matmul(x_TD, projection_DJ)), unitRows(experts_EJ), { transposeB: true });
      const logits_TE = multiply(cosines_TE, exp(minimum(logScale, greatestLogScale)));
      const probabilities_TE = softmax(logits_TE);
      const choices_TK = chooseGreatest(logits_TE, numChoices);
      return {
        routing: { kind: "choices", choices_TK, weights_TK: scoresOfChoices(probabilities_TE, choices_TK) },
        scores: { logits_TE, probabilities_TE },
      };
    },
  });
};
