import { ArgumentError } from "@skein/tensor-core";
import { threefry2x32 } from "@skein/tensor-core/backend";
import { mebibytes } from "../units.ts";
import { fitGaussianProcess, type Prediction } from "./gaussian-process.ts";

/** Bounds and scale of one dimension of the search. */
export interface SearchBound {
  readonly low: number;
  readonly high: number;
  /**
   * Scale of the dimension. Use "log" for sizes, so that a doubling is the same distance at any size. Default:
   * "linear".
   */
  readonly scale?: "linear" | "log";
}

/** A completed trial: the evaluated point, and the observed value of the function. */
export interface Observation {
  readonly point: readonly number[];
  /** Observed value of the function to minimize, such as seconds per iteration. */
  readonly value: number;
}

export interface SuggestTrialOptions {
  /** Point of the first trial. Default: the middle of the bounds. */
  readonly start?: readonly number[];
  /** ξ, minimum improvement, in standard deviations of the observed values. Default: 0.1. */
  readonly exploration?: number;
  /** Seed of the candidate points, a non-negative integer. Default: 0. */
  readonly seed?: number;
}

/**
 * Settings of DeAR's search for the bucket size in bytes: starts at 25 MiB, within 1 to 256 MiB, ten trials. Source:
 * arXiv 2302.12445 and its code.
 */
export const dearSearch: {
  readonly bounds: readonly SearchBound[];
  readonly start: readonly number[];
  readonly exploration: number;
  readonly numTrials: number;
} = {
  bounds: [{ low: mebibytes(1), high: mebibytes(256), scale: "log" }],
  start: [mebibytes(25)],
  exploration: 0.1,
  numTrials: 10,
};

const numCandidates = 1024;

const checkBounds = (bounds: readonly SearchBound[]): void => {
  for (const { low, high, scale } of bounds)
    if (!(low < high && Number.isFinite(low) && Number.isFinite(high) && (scale !== "log" || low > 0)))
      throw new ArgumentError(
        `the search bounds are ${low} to ${high}, but the first must be smaller than the second, and above 0 on a log scale; correct the bounds`,
      );
};

const checkObservations = (observations: readonly Observation[], bounds: readonly SearchBound[]): void => {
  for (const { point, value } of observations)
    if (
      point.length !== bounds.length ||
      !Number.isFinite(value) ||
      point.some((x, i) => !Number.isFinite(toUnit(x, bounds[i]!)))
    )
      throw new ArgumentError(
        `a trial has point [${point.join(", ")}] and value ${value}, but a point must have ${bounds.length} finite numbers and a finite value; leave the trial out`,
      );
};

const toUnit = (x: number, { low, high, scale }: SearchBound): number =>
  scale === "log" ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low);

/**
 * Maps a coordinate in [0, 1] to a value within the bounds of its dimension. The value is clamped because rounding
 * errors may exceed the bounds.
 */
const fromUnit = (u: number, { low, high, scale }: SearchBound): number =>
  Math.min(high, Math.max(low, scale === "log" ? low * (high / low) ** u : low + (high - low) * u));

/**
 * Returns points spread evenly over the unit cube, shifted by the seed. Source: Roberts 2018, the R sequence of the
 * generalized golden ratio.
 */
const spreadPoints = (numDims: number, seed: number, round: number): number[][] => {
  let ratio = 2;
  // Solves ratio^(d + 1) = ratio + 1 by fixed-point iteration.
  for (let i = 0; i < 40; i++) ratio = (1 + ratio) ** (1 / (numDims + 1));
  const shifts = Array.from(
    { length: numDims },
    (_, dim) => threefry2x32([seed % 2 ** 32, Math.floor(seed / 2 ** 32)], [round, dim])[0] / 2 ** 32,
  );
  return Array.from({ length: numCandidates }, (_, i) =>
    shifts.map((shift, dim) => (shift + (i + 1) / ratio ** (dim + 1)) % 1),
  );
};

/**
 * Computes the expected improvement in standard deviations: φ(z) + z · Φ(z). Source of Φ: Abramowitz and Stegun
 * 26.2.17, error below 8e-8.
 */
const unitImprovement = (z: number): number => {
  const density = Math.exp(-(z ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const tail =
    density * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return Math.max(0, density + z * (z < 0 ? tail : 1 - tail));
};

const standardDeviation = (values: readonly number[]): number => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
};

const modelOf = (
  observations: readonly Observation[],
  bounds: readonly SearchBound[],
): { readonly points: readonly (readonly number[])[]; readonly predict: (point: readonly number[]) => Prediction } => {
  const points = observations.map(({ point }) => point.map((x, i) => toUnit(x, bounds[i]!)));
  return {
    points,
    predict: fitGaussianProcess(
      points,
      observations.map(({ value }) => value),
    ),
  };
};

/**
 * Suggests the next trial of an expensive, noisy function: the point with the largest expected improvement under a
 * Gaussian process fitted to the trials so far,
 *
 *     EI(x) = E max(0, best − ξ − f(x)),   best = smallest posterior mean at the trials
 *
 * The smallest observed value is not used, because noise biases it downwards. Deterministic: the same trials and seed
 * give the same point, so every rank can compute the point without communication.
 *
 * Cost: O(1000 · trials² + 30 · trials³).
 *
 * @param bounds Bounds of each dimension.
 * @returns a point within the bounds; `start` before the first trial.
 * @throws ArgumentError if a lower bound is not below the upper bound, a point has another dimension, or a value is not
 * finite.
 *
 * @example
 * ```ts
 * const bounds = [{ low: 1e5, high: 1e8, scale: "log" }] as const;
 * const point = suggestTrial([], bounds, { start: [1e6] });
 * console.log(point.map(Math.round)); // [1000000]
 * ```
 * Source: Mockus 1978 and Jones et al. 1998 (expected improvement); Zhang et al. 2023, arXiv 2302.12445, tunes the
 * buckets of DeAR this way.
 */
export const suggestTrial = (
  observations: readonly Observation[],
  bounds: readonly SearchBound[],
  { start, exploration = 0.1, seed = 0 }: SuggestTrialOptions = {},
): readonly number[] => {
  checkBounds(bounds);
  checkObservations(observations, bounds);
  if (observations.length === 0) return start ?? bounds.map((bound) => fromUnit(0.5, bound));
  const { points, predict } = modelOf(observations, bounds);
  const spread = standardDeviation(observations.map(({ value }) => value)) || 1;
  const target = Math.min(...points.map((point) => predict(point).mean)) - exploration * spread;
  const evaluate = (point: readonly number[]): { readonly improvement: number; readonly deviation: number } => {
    const { mean, deviation } = predict(point);
    return { improvement: deviation === 0 ? 0 : deviation * unitImprovement((target - mean) / deviation), deviation };
  };
  const candidates = spreadPoints(bounds.length, seed, observations.length).map((point) => ({
    point,
    ...evaluate(point),
  }));
  let best = candidates.reduce((a, b) => (b.improvement > a.improvement ? b : a));
  // If no candidate has an expected improvement, explore the candidate with the largest uncertainty.
  if (best.improvement === 0) best = candidates.reduce((a, b) => (b.deviation > a.deviation ? b : a));
  else
    for (let step = 1 / 32; step > 1e-4; step /= 2)
      for (const dim of bounds.keys())
        for (const to of [best.point[dim]! - step, best.point[dim]! + step]) {
          const point = best.point.with(dim, Math.min(1, Math.max(0, to)));
          const found = { point, ...evaluate(point) };
          if (found.improvement > best.improvement) best = found;
        }
  return best.point.map((u, i) => fromUnit(u, bounds[i]!));
};

/**
 * Chooses the best trial: the trial with the smallest posterior mean. The smallest observed value may be small only
 * because of noise.
 *
 * @throws ArgumentError under the conditions of `suggestTrial`, and if there are no trials.
 * @example
 * ```ts
 * const bounds = [{ low: 0, high: 4 }];
 * const observations = [0, 1, 2, 3, 4].map((x) => ({ point: [x], value: (x - 2) ** 2 }));
 * console.log(bestTrial(observations, bounds).point); // [2]
 * ```
 */
export const bestTrial = (observations: readonly Observation[], bounds: readonly SearchBound[]): Observation => {
  checkBounds(bounds);
  checkObservations(observations, bounds);
  if (observations.length === 0)
    throw new ArgumentError("bestTrial got 0 trials, but needs at least one; run a trial first");
  const { points, predict } = modelOf(observations, bounds);
  const means = points.map((point) => predict(point).mean);
  return observations[means.indexOf(Math.min(...means))]!;
};
