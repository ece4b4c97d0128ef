// Shapes: T tokens of this rank, E experts, K choices of a token.
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
  /** Default: 0.1, as in the paper. */
  readonly coefficient?: number;
}

/** Square of the coefficient of variation: variance over squared mean. */
const squaredVariation = (x_E: Tensor): Tensor => divide(variance(x_E), maximum(square(mean(x_E)), 1e-10));

const standardNormal = (x: Tensor): Tensor => multiply(add(erf(multiply(x, Math.SQRT1_2)), 1), 0.5);

/** How probable it is that an expert is among the K of a token, if its noise is drawn anew and no other's. */
const chanceOfChoice = (logits_TE: Tensor, { noisy_TE, deviation_TE }: ScoreNoise, numChoices: number): Tensor => {
  const numTokens = logits_TE.shape[0]!;
  const [best] = topK(noisy_TE, numChoices + 1);
  const column = (k: number): Tensor => slice(best, [0, k], [numTokens, k + 1]);
  // Against the K-th of the others: one of the K meets the one behind them.
  const threshold_TE = where(greater(noisy_TE, column(numChoices)), column(numChoices), column(numChoices - 1));
  return standardNormal(divide(subtract(logits_TE, threshold_TE), maximum(deviation_TE, 1e-10)));
};

/**
 * `coefficient / 2 · (CV²(importance) + CV²(load))` over the tokens of all ranks: importance of an expert is the sum of
 * its probabilities, load the sum of its chances to be chosen, a smooth count. CV is the standard deviation over the
 * mean; 0 where all experts have the same.
 *
 * Without noise (outside of training, say) a chance has no slope: the load is left out. So it is where every token
 * takes all experts.
 *
 * Cost: two all-reduces of E numbers, and the K + 1 greatest scores of each token.
 * @throws ArgumentError for a coefficient that is not positive, and for a gate that mixes.
 * Source: Shazeer et al. 2017, arXiv 1701.06538, eq. 6 to 11, where both terms have weights of their own; as a mean of
 * both in Tutel, which takes the K-th score of all as threshold, and probabilities as importance.
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
 * A sum over the whole batch, through which the gradient flows to one part: times the number of parts, since the losses
 * of parts are averaged.
 */
const withGradientOf = (part_E: Tensor, whole_E: Tensor, numParts: number): Tensor =>
  add(stopGradient(whole_E), multiply(subtract(part_E, stopGradient(part_E)), numParts));
