import { type Observation, type SearchBound, suggest } from "@skein/cost-model";
import { threefry2x32 } from "@skein/tensor-core/backend";
import { type Dimension, numberAt, type Point, type Range, shortened } from "./search-space.ts";

/** Every combination of some choices; the last key changes fastest. */
export const gridPoints = (choices: readonly (readonly unknown[])[]): Point[] =>
  choices.reduce<Point[]>(
    (points, values) => points.flatMap((point) => values.map((value) => [...point, value])),
    [[]],
  );

/** A number from 0 to 1 (excluded), determined by seed, draw and dimension. */
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

/** Maximum number of extra draws for new points; if all of them repeat, hardly any other point exists. */
const maxDraws = 1000;

/**
 * Distinct random points, uniform over ranges on their scale and over choices. Fewer if the space has no more. Pure.
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

/** A trial that has ended. */
export interface Tried {
  readonly point: Point;
  /** Absent: the trial failed, so its point counts as the worst. */
  readonly loss: number | undefined;
}

/**
 * Observations for a Gaussian process. Losses far above the median are reduced, because one nearly diverged run would
 * make all others look the same to the process.
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
 * The next points of a Bayesian search, to be tried concurrently. Each point is chosen as if the previous points had
 * the mean loss of the known trials, so that the points are spread out. Pure: the same trials and seed give the same
 * points, regardless of the order in which trials end.
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
    const near = suggest(assumed, bounds, { seed }).map((value, dim) => shortened(ranges[dim]!, value));
    // A whole number, or a number of four digits, may have been tried already; then a random untried point is used
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
