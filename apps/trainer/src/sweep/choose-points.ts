import { type Observation, type SearchBound, suggestTrial } from "@skein/cost-model/planners";
import { threefry2x32 } from "@skein/tensor-core/backend";
import { type Dimension, numberAt, type Point, type Range, shortened } from "./search-space.ts";

/**
 * Returns the points of a grid search: all combinations of the values of several job keys. The value of the last key
 * changes fastest.
 */
export const gridPoints = (choices: readonly (readonly unknown[])[]): Point[] =>
  choices.reduce<Point[]>(
    (points, values) => points.flatMap((point) => values.map((value) => [...point, value])),
    [[]],
  );

/**
 * Returns a uniform random number in [0, 1), determined by the seed, the index of the draw and the index of the
 * dimension.
 */
const drawn = (seed: number, draw: number, dim: number): number =>
  threefry2x32([seed % 2 ** 32, Math.floor(seed / 2 ** 32)], [draw, dim])[0] / 2 ** 32;

const randomPoint = (dimensions: readonly Dimension[], seed: number, draw: number): Point =>
  dimensions.map((dimension, dim) => {
    const share = drawn(seed, draw, dim);
    return dimension.kind === "choice"
      ? dimension.values[Math.floor(share * dimension.values.length)]
      : numberAt(dimension, share);
  });

const keyOf = (point: Point): string => JSON.stringify(point);

/**
 * Maximum number of additional draws. If all additional draws repeat known points, the space has hardly any other
 * points.
 */
const maxDraws = 1000;

/**
 * Returns distinct random points. Each value is drawn uniformly from a list, or uniformly on the scale of a range.
 * Returns fewer points if the space has fewer points. Deterministic for a seed.
 *
 * Source: Bergstra and Bengio 2012, Random Search for Hyper-Parameter Optimization.
 */
export const randomPoints = (dimensions: readonly Dimension[], count: number, seed: number): Point[] => {
  const points = new Map<string, Point>();
  for (let draw = 0; points.size < count && draw < count + maxDraws; draw++) {
    const point = randomPoint(dimensions, seed, draw);
    points.set(keyOf(point), point);
  }
  return [...points.values()];
};

/** A finished or failed trial, with its loss. */
export interface Tried {
  readonly point: Point;
  /** Validation loss. Undefined: the trial failed, and its point counts as the worst. */
  readonly loss: number | undefined;
}

/**
 * Returns the points and losses of trials for the fit of a Gaussian process. Losses far above the median are clipped,
 * because the loss of a nearly diverged run would make all other losses look equal. A failed trial gets the highest
 * clipped loss.
 */
const observations = (tried: readonly Tried[]): Observation[] => {
  const known = tried.flatMap(({ loss }) => (loss === undefined ? [] : [loss])).toSorted((a, b) => a - b);
  const [best, middle] = [known[0] ?? 0, known[Math.floor(known.length / 2)] ?? 0];
  const most = Math.max(middle + 3 * (middle - best), known.length === 0 ? 1 : Number.NEGATIVE_INFINITY);
  const worst = Math.min(most, known.at(-1) ?? most);
  return tried.map(({ point, loss }) => ({
    point: point as readonly number[],
    value: loss === undefined ? worst : Math.min(most, loss),
  }));
};

/**
 * Returns the next points of a Bayesian search, for concurrent trials. Each point is chosen as if the previously chosen
 * points had the mean loss of the known trials, so that the points are spread out. Deterministic: equal trials and
 * seeds give equal points, regardless of the order in which trials ended.
 *
 * @returns fewer than `count` points if all promising points have been tried.
 *
 * Source: Ginsbourger, Le Riche and Carraro 2010 (the constant liar).
 */
export const suggestedPoints = (
  ranges: readonly Range[],
  tried: readonly Tried[],
  { count, seed }: { readonly count: number; readonly seed: number },
): Point[] => {
  const bounds: readonly SearchBound[] = ranges.map(({ low, high, scale }) => ({ low, high, scale }));
  const seen = observations(tried);
  const mean = seen.reduce((sum, { value }) => sum + value, 0) / Math.max(1, seen.length);
  const points: Point[] = [];
  const taken = new Set(tried.map(({ point }) => keyOf(point)));
  while (points.length < count) {
    const assumed = [...seen, ...points.map((point) => ({ point: point as readonly number[], value: mean }))];
    const near = suggestTrial(assumed, bounds, { seed }).map((value, dim) => shortened(ranges[dim]!, value));
    // A point rounded to integers or to four digits may have been tried already. Then a random untried point is used
    // instead.
    const point = taken.has(keyOf(near))
      ? randomPoints(ranges, taken.size + 1, seed + 1).find((other) => !taken.has(keyOf(other)))
      : near;
    if (point === undefined) break;
    taken.add(keyOf(point));
    points.push(point);
  }
  return points;
};
