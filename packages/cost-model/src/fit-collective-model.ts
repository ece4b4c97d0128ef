import { median } from "@skein/measuring";
import { fitLink, type LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import type { LinearCollectiveModel, CollectivePiece, PiecewiseCollectiveModel } from "./collective-model.ts";

/** A fitted model, with measures of its fit quality. */
export interface FittedCollectiveModel extends LinearCollectiveModel {
  /** Number of samples left out of the fit: invalid samples and outliers. */
  readonly numLeftOut: number;
  /** Largest relative error |a + b · M − t| / t over the samples used for the fit. */
  readonly worstRelativeError: number;
}

const isValid = ({ bytes, seconds }: LinkSample): boolean =>
  seconds > 0 && bytes >= 0 && Number.isFinite(seconds) && Number.isFinite(bytes);

/** Returns the median time of each message size, in ascending order of size. */
const mediansBySize = (samples: readonly LinkSample[]): readonly LinkSample[] =>
  [...Map.groupBy(samples, ({ bytes }) => bytes)]
    .map(([bytes, same]) => ({ bytes, seconds: median(same.map(({ seconds }) => seconds)) }))
    .sort((a, b) => a.bytes - b.bytes);

type Line = readonly [startup: number, perByte: number];

const relativeError = ([startup, perByte]: Line, { bytes, seconds }: LinkSample): number =>
  Math.abs((startup + perByte * bytes) / seconds - 1);

/**
 * Maximum number of points through whose pairs candidate lines are drawn. If there are more points, an evenly spaced
 * subset is used: the 2016 pairs of 64 points contain a good line for any number of sizes.
 */
const maxTried = 64;

/**
 * Finds a line by least median of squares: among the lines through two of the points, the line with the smallest median
 * of relative errors.
 */
const minMedianLine = (points: readonly LinkSample[]): { readonly line: Line; readonly error: number } => {
  let best: { readonly line: Line; readonly error: number } = { line: [0, 0], error: Infinity };
  const stride = Math.max(1, points.length / maxTried);
  const tried = Array.from({ length: Math.min(points.length, maxTried) }, (_, i) => points[Math.floor(i * stride)]!);
  for (const [i, first] of tried.entries())
    for (const second of tried.slice(i + 1)) {
      const perByte = (second.seconds - first.seconds) / (second.bytes - first.bytes);
      const line: Line = [first.seconds - perByte * first.bytes, perByte];
      if (line[0] < 0 || line[1] < 0) continue;
      const error = median(points.map((point) => relativeError(line, point)));
      if (error < best.error) best = { line, error };
    }
  return best;
};

/**
 * Leaves out outliers: returns only the points that are close to the line through most points. With fewer than four
 * message sizes, all points are returned, because outliers cannot be identified.
 */
const withoutOutliers = (samples: readonly LinkSample[]): readonly LinkSample[] => {
  const points = mediansBySize(samples);
  if (points.length < 4) return points;
  const { line, error } = minMedianLine(points);
  if (error === Infinity) return points;
  // Rousseeuw's scale and cutoff. The scale is at least 1 %; otherwise rounding errors would be outliers of a nearly
  // perfect line.
  const scale = Math.max(1.4826 * (1 + 5 / (points.length - 2)) * error, 0.01);
  const inliers = points.filter((point) => relativeError(line, point) <= 2.5 * scale);
  return inliers.length < 2 ? points : inliers;
};

/**
 * Fits a + b · M robustly to measured times of one collective. Invalid samples are left out, and each message size is
 * represented by its median time. Outliers are also left out: sizes far from the line that minimizes the median of the
 * squared relative errors. `fitLink` of the collectives package then fits the remaining sizes by least squares of
 * relative errors with a, b ≥ 0.
 *
 * Tolerates outliers in up to nearly half of the sizes. Cost: O(sizes · log sizes) for each of about 2000 candidate
 * lines; O(sizes³) below 64 sizes.
 *
 * @param samples Measured times for at least two message sizes; ten or more are better.
 * @throws ArgumentError if fewer than two sizes are left.
 * @example
 * ```ts
 * const samples = [1e6, 2e6, 4e6].map((bytes) => ({ bytes, seconds: 1 + bytes / 1e6 }));
 * const { startupSeconds, secondsPerByte } = fitCollectiveModel(samples);
 * console.log(startupSeconds.toFixed(3), (secondsPerByte * 1e6).toFixed(3)); // 1.000 1.000
 * ```
 * Source: Rousseeuw 1984, Least median of squares regression, J. Am. Stat. Assoc. 79.
 */
export const fitCollectiveModel = (samples: readonly LinkSample[]): FittedCollectiveModel => {
  const clean = samples.filter(isValid);
  const points = withoutOutliers(clean);
  const { secondsPerMessage, secondsPerByte, worstRelativeError } = fitLink(points);
  const sizes = new Set(points.map(({ bytes }) => bytes));
  const numUsed = clean.filter(({ bytes }) => sizes.has(bytes)).length;
  return {
    startupSeconds: secondsPerMessage,
    secondsPerByte,
    numLeftOut: samples.length - numUsed,
    worstRelativeError,
  };
};

export interface PiecewiseFitOptions {
  /**
   * Relative error of a measured time that is treated as noise. Default: 0.1, a typical difference between runs on one
   * machine.
   */
  readonly noise?: number;
}

/**
 * Minimum number of message sizes per piece. A line through two sizes fits them exactly, so its error would be unknown.
 */
const fewestSizes = 3;

/**
 * Fits a piecewise linear model, for libraries that change their algorithm with the message size. Uses segmented least
 * squares: the breakpoints minimize Σ (relative error / noise)² + 3 · ln(sizes) per piece, by dynamic programming; each
 * piece is then fitted by `fitCollectiveModel`.
 *
 * Cost: O(sizes³).
 *
 * @param samples Measured times for at least two message sizes; each piece contains three or more sizes.
 * @throws ArgumentError if fewer than two sizes are left, or if `noise` is not positive.
 *
 * @example
 * ```ts
 * const seconds = (bytes: number) => (bytes < 1e5 ? 1e-5 + bytes * 1e-9 : 1e-4 + bytes * 1e-10);
 * const sizes = Array.from({ length: 12 }, (_, i) => 1e4 * 2 ** i);
 * const samples = sizes.map((bytes) => ({ bytes, seconds: seconds(bytes) }));
 * console.log(fitPiecewiseCollectiveModel(samples).pieces.length); // 2
 * ```
 * Source: Bellman 1961, On the approximation of curves by line segments using dynamic programming, Commun. ACM 4.
 */
export const fitPiecewiseCollectiveModel = (
  samples: readonly LinkSample[],
  { noise = 0.1 }: PiecewiseFitOptions = {},
): PiecewiseCollectiveModel => {
  if (!(noise > 0)) throw new ArgumentError(`noise is ${noise}, but must be a relative error above 0, such as 0.1`);
  const clean = samples.filter(isValid);
  const points = mediansBySize(clean);
  const perPiece = 3 * Math.log(points.length);
  const costs = [0];
  const begins = [0];
  for (let j = 1; j <= points.length; j++) {
    costs[j] = Infinity;
    for (let i = 0; i <= j - fewestSizes; i++) {
      if (costs[i] === Infinity) continue;
      const piece = points.slice(i, j);
      const { secondsPerMessage, secondsPerByte } = fitLink(piece);
      const error = piece.reduce(
        (sum, point) => sum + (relativeError([secondsPerMessage, secondsPerByte], point) / noise) ** 2,
        0,
      );
      if (costs[i]! + error + perPiece < costs[j]!) [costs[j], begins[j]] = [costs[i]! + error + perPiece, i];
    }
  }
  const pieces: CollectivePiece[] = [];
  for (let j = points.length; j > 0; j = begins[j] ?? 0) {
    const begin = begins[j] ?? 0;
    const sizes = new Set(points.slice(begin, j).map(({ bytes }) => bytes));
    const { startupSeconds, secondsPerByte } = fitCollectiveModel(clean.filter(({ bytes }) => sizes.has(bytes)));
    pieces.push({ fromBytes: begin === 0 ? 0 : points[begin]!.bytes, startupSeconds, secondsPerByte });
  }
  if (pieces.length === 0) return { pieces: [{ fromBytes: 0, ...fitCollectiveModel(samples) }] };
  return { pieces: pieces.reverse() };
};
