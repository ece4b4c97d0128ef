import { ArgumentError } from "@skein/tensor-core";

/** Options for sampling the next token. */
export interface Sampling {
  /** Logits are divided by the temperature; 0: the most likely token. */
  readonly temperature: number;
  /** Sample only from this many most likely tokens. Default: all. */
  readonly topK?: number | undefined;
  /** Sample only from the most likely tokens with this total probability. Default: 1, all. */
  readonly topP?: number | undefined;
}

/**
 * Samples a token: from the `topK` most likely tokens, those that reach a total probability of `topP`, by their
 * softmax. Of equal logits, the token with the smaller number counts as more likely.
 *
 * @param logits one score per token.
 * @param u uniformly distributed in [0, 1).
 * @throws ArgumentError for scores that are not finite. Source of `topP`: Holtzman et al. 2020, arXiv 1904.09751.
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
  return candidates[numKept - 1]!; // rounding
};
