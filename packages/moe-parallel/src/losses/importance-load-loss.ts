// Shapes: T tokens of this rank, E experts, K choices per token.
import {
  add,
  divide,
  erf,
  greater,
  maximum,
  mean,
  multiply,
  slice,
  square,
  stopGradient,
  subtract,
  sum,
  type Tensor,
  topK,
  variance,
  where,
  zeros,
} from "@skein/tensor-core";
import { checkPositive } from "../options.ts";
import { sumOverRanks } from "../over-ranks.ts";
import {
  type AuxiliaryLoss,
  requireChoices,
  type RouterScores,
  type ScoreNoise,
  type WholeBatch,
} from "./auxiliary-loss.ts";

export interface ImportanceLoadLossOptions {
  /** Factor by which the loss is multiplied. Default: 0.1, as in the paper. */
  readonly coefficient?: number;
}

/** Returns the squared coefficient of variation: variance divided by squared mean. */
const squaredVariation = (x_E: Tensor): Tensor => divide(variance(x_E), maximum(square(mean(x_E)), 1e-10));

const standardNormal = (x: Tensor): Tensor => multiply(add(erf(multiply(x, Math.SQRT1_2)), 1), 0.5);

/** Returns the probability that an expert is among a token's K choices if only the noise of this expert is redrawn. */
const chanceOfChoice = (logits_TE: Tensor, { noisy_TE, deviation_TE }: ScoreNoise, numChoices: number): Tensor => {
  const numTokens = logits_TE.shape[0]!;
  const [best] = topK(noisy_TE, numChoices + 1);
  const column = (k: number): Tensor => slice(best, [0, k], [numTokens, k + 1]);
  // Threshold: the K-th largest score among the other experts. If the expert is one of the K chosen experts, this is
  // the (K + 1)-th largest score of all.
  const threshold_TE = where(greater(noisy_TE, column(numChoices)), column(numChoices), column(numChoices - 1));
  return standardNormal(divide(subtract(logits_TE, threshold_TE), maximum(deviation_TE, 1e-10)));
};

/**
 * Importance and load loss `coefficient / 2 · (CV²(importance) + CV²(load))` over the tokens of all ranks. The
 * importance of an expert is the sum of its probabilities. Its load is the sum of the probabilities that it is chosen,
 * a smooth count. CV is the standard deviation divided by the mean; 0 if all experts are equal.
 *
 * The load term is left out if there is no noise, for example outside of training, because the choice probability then
 * has no gradient. The load term is also left out if every token chooses all experts.
 *
 * Cost: two all-reduces of E numbers, and the K + 1 greatest scores of each token.
 * @throws ArgumentError if the coefficient is not positive, or the gate mixes tokens.
 * @example
 * ```ts
 * const gate = noisyTopKGate({ width: 4, numExperts: 8, numChoices: 2, losses: [importanceLoadLoss()] });
 * console.log(gate.numExperts); // 8
 * ```
 * Source: Shazeer et al. 2017, arXiv 1701.06538, eq. 6 to 11, with separate weights for both terms; as a mean of both
 * in Tutel, which uses the K-th score of all experts as threshold, and probabilities as importance.
 */
export const importanceLoadLoss = ({ coefficient = 0.1 }: ImportanceLoadLossOptions = {}): AuxiliaryLoss => {
  checkPositive("importanceLoadLoss", "coefficient", coefficient, 0.1);
  const sums = (scores: RouterScores, tokenAxes: readonly string[]): { readonly [name: string]: Tensor } => {
    const { logits_TE, probabilities_TE, noise } = scores;
    const [numExperts, numChoices] = [logits_TE.shape[1]!, requireChoices("importanceLoadLoss", scores).shape[1]!];
    const chance_E =
      noise === undefined || numChoices >= numExperts
        ? zeros([numExperts])
        : sumOverRanks(sum(chanceOfChoice(logits_TE, noise, numChoices), { dims: 0 }), tokenAxes);
    return { importance_E: sumOverRanks(sum(probabilities_TE, { dims: 0 }), tokenAxes), chance_E };
  };
  const loss = (scores: RouterScores, tokenAxes: readonly string[], whole?: WholeBatch): Tensor => {
    const own = sums(scores, tokenAxes);
    const variations = Object.entries(own).map(([name, part_E]) =>
      squaredVariation(whole === undefined ? part_E : withGradientOf(part_E, whole.sums[name]!, whole.numParts)),
    );
    return multiply(
      variations.reduce((total, one) => add(total, one)),
      coefficient / 2,
    );
  };
  return Object.assign(loss, { sums });
};

/**
 * Returns a sum over the full batch whose gradient flows to one part of the batch only. The gradient is multiplied by
 * the number of parts, because the losses of parts are averaged.
 */
const withGradientOf = (part_E: Tensor, whole_E: Tensor, numParts: number): Tensor =>
  add(stopGradient(whole_E), multiply(subtract(part_E, stopGradient(part_E)), numParts));
