import { ArgumentError } from "@skein/tensor-core";

/** How the next token is drawn. */
export interface Sampling {
  /** Scores are divided by it; 0 takes the most likely token. */
  readonly temperature: number;
  /** Only so many tokens may come, the most likely ones. Default: all. */
  readonly topK?: number | undefined;
  /** Only the most likely tokens that have this probability together. Default: 1, all. */
  readonly topP?: number | undefined;
}

/**
 * Draw a token: among the `topK` most likely ones those that reach `topP` together, by their softmax. Of equals the one
 * with the lesser number counts as more likely.
 *
 * @param logits a score for each token.
 * @param u in [0, 1), evenly drawn.
 * @throws ArgumentError for scores that are not finite. Source of `topP`: Holtzman et al. 2020, arXiv 1904.09751.
 */
export const sampleToken = (logits: Float32Array, { temperature, topK, topP = 1 }: Sampling, u: number): number => {
  const bad = logits.findIndex((score) => !Number.isFinite(score));
  if (bad >= 0)
    throw new ArgumentError(
      `the score of token ${bad} is ${logits[bad]}, so nothing can be drawn; take a checkpoint whose parameters are finite`,
    );
  if (temperature === 0) return logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  const order = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const candidates = order.slice(0, topK ?? order.length);
  const greatest = logits[candidates[0]!]!;
  const weights = candidates.map((token) => Math.exp((logits[token]! - greatest) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let [kept, keptWeight] = [0, 0];
  while (kept < weights.length && (kept === 0 || keptWeight < topP * total)) keptWeight += weights[kept++]!;
  let left = u * keptWeight;
  for (let i = 0; i < kept; i++) {
    left -= weights[i]!;
    if (left < 0) return candidates[i]!;
  }
  return candidates[kept - 1]!; // rounding
};
