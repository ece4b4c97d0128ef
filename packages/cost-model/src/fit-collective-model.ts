import { fitLink, type LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import type { LinearCollectiveModel, CollectivePiece, PiecewiseCollectiveModel } from "./collective-model.ts";
import { median } from "./median.ts";

/** A fitted model, and how well it fits. */
export interface FittedCollectiveModel extends LinearCollectiveModel {
  /** Samples that were no figures, or lay too far from the others to be believed. */
  readonly numLeftOut: number;
  /** The largest |a + b · M − t| / t of the samples that were kept. */
  readonly worstRelativeError: number;
}

const possible = ({ bytes, seconds }: LinkSample): boolean =>
  seconds > 0 && bytes >= 0 && Number.isFinite(seconds) && Number.isFinite(bytes);

/** Median time of each size, by size. */
const mediansBySize = (samples: readonly LinkSample[]): readonly LinkSample[] =>
  [...Map.groupBy(samples, ({ bytes }) => bytes)]
    .map(([bytes, same]) => ({ bytes, seconds: median(same.map(({ seconds }) => seconds)) }))
    .sort((a, b) => a.bytes - b.bytes);

type Line = readonly [startup: number, perByte: number];

const relativeError = ([startup, perByte]: Line, { bytes, seconds }: LinkSample): number =>
  Math.abs((startup + perByte * bytes) / seconds - 1);

/**
 * Points through which lines are tried: all, or as many as this at even distances. Two thousand pairs hold a good one,
 * however many sizes there are.
 */
const mostTried = 64;

/** Least median of squares: the line through two of the points from which the median of relative errors is smallest. */
const leastMedianLine = (points: readonly LinkSample[]): { readonly line: Line; readonly error: number } => {
  let best: { readonly line: Line; readonly error: number } = { line: [0, 0], error: Infinity };
  const stride = Math.max(1, points.length / mostTried);
  const tried = Array.from({ length: Math.min(points.length, mostTried) }, (_, i) => points[Math.floor(i * stride)]!);
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
 * Samples near the line that most of them lie on; with few sizes nobody can say which of them is wrong, so all are
 * kept.
 */
const believable = (samples: readonly LinkSample[]): readonly LinkSample[] => {
  const points = mediansBySize(samples);
  if (points.length < 4) return points;
  const { line, error } = leastMedianLine(points);
  if (error === Infinity) return points;
  // Rousseeuw's scale and cut; at least 1 %, so that a nearly perfect line does not turn its own rounding into
  // outliers.
  const scale = Math.max(1.4826 * (1 + 5 / (points.length - 2)) * error, 0.01);
  const kept = points.filter((point) => relativeError(line, point) <= 2.5 * scale);
  return kept.length < 2 ? points : kept;
};

/**
 * Fit a + b · M to measured times of one collective, where some of them may be bad. Samples that are no figures are
 * left out; each size counts by its median; sizes that lie far from the line of most of them (least median of squares
 * of relative errors) are left out; `fitLink` of the collectives, least squares of relative errors with a, b ≥ 0,
 * settles the rest.
 *
 * Up to nearly half of the sizes may be bad. Cost: O(sizes · log sizes), two thousand times; O(sizes³) below 64 sizes.
 *
 * @param samples of at least two sizes, better ten or more.
 * @throws ArgumentError where fewer than two sizes are left.
 *
 * Source: Rousseeuw 1984, Least median of squares regression, J. Am. Stat. Assoc. 79.
 */
export const fitCollectiveModel = (samples: readonly LinkSample[]): FittedCollectiveModel => {
  const clean = samples.filter(possible);
  const points = believable(clean);
  const { secondsPerMessage, secondsPerByte, worstRelativeError } = fitLink(points);
  const sizes = new Set(points.map(({ bytes }) => bytes));
  const numKept = clean.filter(({ bytes }) => sizes.has(bytes)).length;
  return {
    startupSeconds: secondsPerMessage,
    secondsPerByte,
    numLeftOut: samples.length - numKept,
    worstRelativeError,
  };
};

export interface PiecewiseFitOptions {
  /** Relative error of a time that is taken for noise. Default: 0.1, what repeated runs on one machine differ by. */
  readonly noise?: number;
}

/** Sizes that a piece needs: a line through two says nothing about a third. */
const fewestSizes = 3;

/**
 * Fit lines that follow one another, for libraries that change their algorithm with the size. Segmented least squares:
 * the cuts are those with the least Σ (relative error / noise)² + 3 · ln(sizes) per piece, found by dynamic
 * programming; each piece is then fitted as `fitCollectiveModel` does.
 *
 * Cost: O(sizes³).
 *
 * @param samples of at least two sizes; a piece has three or more.
 * @throws ArgumentError where fewer than two sizes are left, or for a noise that is not positive.
 *
 * Source: Bellman 1961, On the approximation of curves by line segments using dynamic programming, Commun. ACM 4.
 */
export const fitPiecewiseCollectiveModel = (
  samples: readonly LinkSample[],
  { noise = 0.1 }: PiecewiseFitOptions = {},
): PiecewiseCollectiveModel => {
  if (!(noise > 0)) throw new ArgumentError(`a noise of ${noise} was given; it is a relative error, such as 0.1`);
  const clean = samples.filter(possible);
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
      const misfit = piece.reduce(
        (sum, point) => sum + (relativeError([secondsPerMessage, secondsPerByte], point) / noise) ** 2,
        0,
      );
      if (costs[i]! + misfit + perPiece < costs[j]!) [costs[j], begins[j]] = [costs[i]! + misfit + perPiece, i];
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
