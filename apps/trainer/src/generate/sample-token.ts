import { ArgumentError } from "@skein/tensor-core";

/** Options for sampling the next token. */
export interface Sampling {
  /** Divisor of the logits. With 0, the most likely token is chosen. */
  readonly temperature: number;
  /** Number of most likely tokens from which to sample. Default: all tokens. */
  readonly topK?: number | undefined;
  /** Minimum total probability of the most likely tokens from which to sample. Default: 1, all tokens. */
  readonly topP?: number | undefined;
}

/**
 * Samples a token by softmax from the most likely tokens whose total probability reaches `topP`, among the `topK` most
 * likely tokens. Among tokens with equal logits, the token with the smaller number counts as more likely.
 *
 * @param logits one logit per token.
 * @param u random number, uniformly distributed in [0, 1).
 * @throws ArgumentError if a logit is not finite. Source of `topP`: Holtzman et al. 2020, arXiv 1904.09751.
 */
export const sampleToken = (logits: Float32Array, { temperature, topK, topP = 1 }: Sampling, u: number): number => {
  const bad = logits.findIndex((score) => !Number.isFinite(score));
  if (bad >= 0)
    throw new ArgumentError(
      `the score of token ${bad} is ${logits[bad]}, so no token can be sampled; use a checkpoint whose parameters are finite`,
    );
  if (temperature === 0) return logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  const order = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const candidates = order.slice(0, topK ?? order.length);
  const greatest = logits[candidates[0]!]!;
  const weights = candidates.map((token) => Math.exp((logits[token]! - greatest) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let [numKept, keptWeight] = [0, 0];
  while (numKept < weights.length && (numKept === 0 || keptWeight < topP * total)) keptWeight += weights[numKept++]!;
  let left = u * keptWeight;
  for (let i = 0; i < numKept; i++) {
    left -= weights[i]!;
    if (left < 0) return candidates[i]!;
  }
  return candidates[numKept - 1]!; // reached only because of rounding errors
};
