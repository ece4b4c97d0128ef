// Shapes: T tokens of this rank, E experts, K choices per token.
import { ArgumentError, type Tensor } from "@skein/tensor-core";

/** Scores and choices of a gate, which are the inputs of auxiliary losses and metrics. */
export interface RouterScores {
  /** Router outputs without noise and bias, f32. */
  readonly logits_TE: Tensor;
  /** Probabilities, f32; each row sums to 1. */
  readonly probabilities_TE: Tensor;
  /** Chosen experts, i32; −1 for no choice. Absent for a gate that mixes tokens. */
  readonly choices_TK?: Tensor;
  /** Noise added to the scores. Absent: no noise. */
  readonly noise?: ScoreNoise;
}

/** Noise added to router scores, given as noisy logits and standard deviations of the noise. */
export interface ScoreNoise {
  /** Logits with noise, f32. */
  readonly noisy_TE: Tensor;
  /** Standard deviation of the noise of each logit, f32. */
  readonly deviation_TE: Tensor;
}

/** Named sums over the tokens of all ranks, f32 [E] per sum. */
export type TokenSums = Readonly<Record<string, Tensor>>;

/** Full-batch sums that a part of the batch needs for auxiliary losses, computed by an earlier pass over all parts. */
export interface WholeBatch {
  /** Number of parts, each with the same number of tokens. */
  readonly numParts: number;
  /** Sums over the tokens of all parts and ranks. */
  readonly sums: TokenSums;
}

/** An auxiliary loss term. */
export interface AuxiliaryLoss {
  /**
   * Computes the term, f32 scalar, including its coefficient. Tokens are distributed evenly over the ranks of
   * `tokenAxes`. The result is either the value for the tokens of all ranks, or a value per rank whose mean over ranks
   * is that value.
   *
   * @param whole data of the full batch, if the tokens are a part of a batch. The mean of all parts' terms, and of
   *   their gradients, then equals the term of the full batch. Absent: the tokens are the full batch.
   */
  (scores: RouterScores, tokenAxes: readonly string[], whole?: WholeBatch): Tensor;
  /**
   * Returns the sums over tokens that the term uses nonlinearly. For a part of a batch, the term needs these sums over
   * the full batch. Absent: the term needs no such sums, and the mean of the parts' terms equals the batch's term.
   */
  readonly sums?: (scores: RouterScores, tokenAxes: readonly string[]) => TokenSums;
}

/**
 * Returns the expert choices of a gate. Throws ArgumentError if the gate mixes tokens (soft routing), because it makes
 * no choices and its loads are equal.
 */
export const requireChoices = (fn: string, { choices_TK }: RouterScores): Tensor => {
  if (choices_TK === undefined)
    throw new ArgumentError(
      `${fn}: a gate that mixes tokens makes no choices, so loads are equal; leave this loss out`,
    );
  return choices_TK;
};
