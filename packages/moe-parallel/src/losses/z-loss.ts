// Shapes: T tokens of this rank, E experts.
import { logSumExp, mean, multiply, square } from "@skein/tensor-core";
import { checkPositive } from "../options.ts";
import type { AuxiliaryLoss } from "./auxiliary-loss.ts";

export interface ZLossOptions {
  /** Factor by which the loss is multiplied. Default: 0.001. */
  readonly coefficient?: number;
}

/**
 * Router z-loss `coefficient · mean_t (log Σ_e exp logits_te)²`: keeps logits small, so that f32 and narrower formats
 * are accurate. The loss is a mean over a rank's tokens, and its mean over ranks is the mean over all tokens.
 *
 * @throws ArgumentError if the coefficient is not positive.
 * @example
 * ```ts
 * const gate = switchGate({ width: 4, numExperts: 8, losses: [zLoss({ coefficient: 1e-3 })] });
 * console.log(gate.numExperts); // 8
 * ```
 * Source: Zoph et al. 2022 (ST-MoE), arXiv 2202.08906, eq. 5.
 */
export const zLoss = ({ coefficient = 1e-3 }: ZLossOptions = {}): AuxiliaryLoss => {
  checkPositive("zLoss", "coefficient", coefficient, 1e-3);
  return ({ logits_TE }) => multiply(mean(square(logSumExp(logits_TE, { dims: -1 }))), coefficient);
};
