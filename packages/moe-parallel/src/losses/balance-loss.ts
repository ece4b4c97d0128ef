// Shapes: T tokens of this rank, E experts, K choices per token.
import {
  ArgumentError,
  cast,
  divide,
  maximum,
  mean,
  multiply,
  slice,
  stopGradient,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { countPerExpert } from "../load.ts";
import { checkPositive } from "../options.ts";
import { sumOverRanks } from "../over-ranks.ts";
import { type AuxiliaryLoss, requireChoices, type RouterScores, type WholeBatch } from "./auxiliary-loss.ts";

export interface BalanceLossOptions {
  /** Factor by which the loss is multiplied. Default: 0.01. */
  readonly coefficient?: number;
  /** Choices that count as load: all choices, or only the first choice of each token. Default: all. */
  readonly choices?: "all" | "first";
}

/**
 * Load-balancing loss `coefficient · E · Σ_e f_e p_e`. Over the tokens of all ranks, f is an expert's share of the
 * choices, and p its mean probability. Gradients flow through p, so experts that are chosen often become less probable.
 *
 * The value is 1 (times the coefficient) if f or p is uniform, and at most E. The value can be below 1 if frequently
 * chosen experts win by small margins.
 *
 * Cost: an all-reduce of E counts.
 * @throws ArgumentError if the coefficient is not positive.
 * @example
 * ```ts
 * const gate = switchGate({ width: 4, numExperts: 8, losses: [balanceLoss({ coefficient: 0.01 })] });
 * console.log(gate.needsWhole); // true
 * ```
 * Source: Lepikhin et al. 2020 (GShard), arXiv 2006.16668, sec. 2.2; Fedus et al. 2021, arXiv 2101.03961, eq. 4 to 6.
 * `first` as in GShard and Tutel; `all` as in Megatron-LM, which divides loads by K.
 */
export const balanceLoss = (options: BalanceLossOptions = {}): AuxiliaryLoss => {
  const { coefficient = 0.01, choices = "all" } = options;
  checkPositive("balanceLoss", "coefficient", coefficient, 0.01);
  if (choices !== "all" && choices !== "first")
    throw new ArgumentError(`balanceLoss: choices is ${String(choices)}; use all or first`);
  const name = choices === "all" ? "load_E" : "firstLoad_E";
  const sums: AuxiliaryLoss["sums"] = (scores, tokenAxes) => {
    const chosen_TK = requireChoices("balanceLoss", scores);
    const counted = choices === "all" ? chosen_TK : slice(chosen_TK, [0, 0], [chosen_TK.shape[0]!, 1]);
    const own_E = cast(countPerExpert(counted, scores.probabilities_TE.shape[1]!), "f32");
    return { [name]: sumOverRanks(own_E, tokenAxes) };
  };
  const loss = (scores: RouterScores, tokenAxes: readonly string[], whole?: WholeBatch): Tensor => {
    const { probabilities_TE } = scores;
    const numExperts = probabilities_TE.shape[1]!;
    const load_E = (whole?.sums ?? sums(scores, tokenAxes))[name]!;
    // The divisor is at least 1, because the total load is 0 if no token has a choice.
    const shares_E = stopGradient(divide(load_E, maximum(sum(load_E), 1)));
    // Means over these tokens only. The loss is linear in the means, so its mean over ranks and parts equals the loss
    // over all tokens.
    const means_E = mean(probabilities_TE, { dims: 0 });
    return multiply(sum(multiply(shares_E, means_E)), coefficient * numExperts);
  };
  return Object.assign(loss, { sums });
};
