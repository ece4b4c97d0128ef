// Shapes: T tokens of this rank, E experts, K choices of a token.
import { ArgumentError, type Tensor } from "@skein/tensor-core";

/** What a gate saw and decided, as auxiliary losses and figures read it. */
export interface RouterScores {
  /** f32, as they came from the router, without noise and bias. */
  readonly logits_TE: Tensor;
  /** f32, each row adds up to 1. */
  readonly probabilities_TE: Tensor;
  /** i32; −1 where there is no choice. Absent where a gate mixes instead of choosing. */
  readonly choices_TK?: Tensor;
  /** Only where noise was added to the scores. */
  readonly noise?: ScoreNoise;
}

/** Noise of scores, and what came of it. */
export interface ScoreNoise {
  /** f32, logits with their noise. */
  readonly noisy_TE: Tensor;
  /** f32, deviation of the noise of each logit. */
  readonly deviation_TE: Tensor;
}

/** Sums over the tokens of all ranks, f32 [E] each, by name. */
export type TokenSums = Readonly<Record<string, Tensor>>;

/** What a part of a batch knows of the whole batch, from a pass over all parts before. */
export interface WholeBatch {
  /** Number of parts, of equally many tokens. */
  readonly numParts: number;
  /** Over the tokens of all parts and ranks. */
  readonly sums: TokenSums;
}

/** A term of the loss. */
export interface AuxiliaryLoss {
  /**
   * The term, f32 scalar, with its coefficient. Tokens are spread over the ranks of `tokenAxes`, equally many on each:
   * the value is that of the tokens of all ranks, or a part of it such that the mean over the ranks is.
   *
   * @param whole for a part of a batch: the mean of the terms of all parts is then the term of the whole batch, and so
   * are the gradients. Absent: the tokens are all there are.
   */
  (scores: RouterScores, tokenAxes: readonly string[], whole?: WholeBatch): Tensor;
  /**
   * Sums that the term is not linear in; parts of a batch need those of the whole batch. Absent: none, and the mean of
   * the terms of parts is that of the batch.
   */
  readonly sums?: (scores: RouterScores, tokenAxes: readonly string[]) => TokenSums;
}

/** @throws ArgumentError where a gate mixes: its loads are equal. */
export const requireChoices = (fn: string, { choices_TK }: RouterScores): Tensor => {
  if (choices_TK === undefined)
    throw new ArgumentError(`${fn}: a gate that mixes tokens chooses none, so loads are equal; leave this loss out`);
  return choices_TK;
};
