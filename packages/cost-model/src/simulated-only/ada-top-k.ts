import { ArgumentError } from "@skein/tensor-core";

/** Bytes that a kept f32 takes beside those of a dense one: value of 4 bytes and index of 8. */
const sparseOverhead = 3;

/**
 * Choose by how much each link's messages are compressed: rᵢ = max(1, 3 · r · Rᵢ / max Rⱼ), so that the slowest link
 * gets the most and fast ones stay dense. The 3 makes up for indices: 12 bytes for each kept f32.
 *
 * @param linkSeconds Rᵢ: what each link's uncompressed message takes; finite and not negative.
 * @param ratio r: by how much the slowest link's bytes shrink; 1 or more.
 * @returns rᵢ = elements / kept elements by link, from 1 to 3r.
 * @throws ArgumentError for a ratio below 1 or impossible times.
 *
 * Source: Tang et al. 2024, arXiv 2410.12707 (FusionLLM, AdaTopK).
 */
export const adaTopKRatios = (linkSeconds: readonly number[], ratio: number): readonly number[] => {
  if (!(ratio >= 1 && Number.isFinite(ratio)))
    throw new ArgumentError(`AdaTopK: a ratio of ${ratio} was given; it is 1 or more`);
  const wrong = linkSeconds.find((seconds) => !(seconds >= 0 && Number.isFinite(seconds)));
  if (wrong !== undefined)
    throw new ArgumentError(`AdaTopK: a link takes ${wrong} s; times must be finite and not negative`);
  const slowest = Math.max(0, ...linkSeconds);
  // The quotient first: it is exactly 1 for the slowest link.
  return linkSeconds.map((seconds) => (slowest === 0 ? 1 : Math.max(1, sparseOverhead * ratio * (seconds / slowest))));
};

/**
 * Choose the density of each link's messages: 1 / rᵢ of `adaTopKRatios`, and 1 where rᵢ ≤ 3, since twelve bytes for
 * every third element are no fewer than four for each. That loses nothing: such a link takes at most max R / r dense,
 * which is what the slowest one takes compressed.
 *
 * For the cost model only: the links are those between the stages of a pipeline, which no job has yet.
 *
 * @returns densities in (0, 1]: of `topKCompressor` below 1, which is dense and sent as it is.
 * @throws as `adaTopKRatios`.
 */
export const adaTopKDensities = (linkSeconds: readonly number[], ratio: number): readonly number[] =>
  adaTopKRatios(linkSeconds, ratio).map((compression) => (compression <= sparseOverhead ? 1 : 1 / compression));
