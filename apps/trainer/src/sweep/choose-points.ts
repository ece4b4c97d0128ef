import { type Observation, type SearchBound, suggest } from "@skein/cost-model";
import { threefry2x32 } from "@skein/tensor-core/backend";
import { type Dimension, numberAt, type Point, type Range, shortened } from "./search-space.ts";

/** Every combination of some choices; the last key changes fastest. */
export const gridPoints = (choices: readonly (readonly unknown[])[]): Point[] =>
  choices.reduce<Point[]>(
    (points, values) => points.flatMap((point) => values.map((value) => [...point, value])),
    [[]],
  );

/** A number from 0 to 1 (excluded), the same for the same seed, draw and dimension. */
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

/** Draws for a point that was not tried: where even so many give none, there is hardly another. */
const mostDraws = 1000;

/**
 * Points drawn at random, no two alike; evenly over ranges on their scale, and over choices. Fewer where the space has
 * no more. Pure.
 *
 * Source: Bergstra and Bengio 2012, Random Search for Hyper-Parameter Optimization.
 */
export const randomPoints = (dimensions: readonly Dimension[], count: number, seed: number): Point[] => {
  const points = new Map<string, Point>();
  for (let draw = 0; points.size < count && draw < count + mostDraws; draw++) {
    const point = randomPoint(dimensions, seed, draw);
    points.set(keyOf(point), point);
  }
  return [...points.values()];
};

/** A trial that is over. */
export interface Tried {
  readonly point: Point;
  /** Undefined where the trial failed: such a point counts as the worst. */
  readonly loss: number | undefined;
}

/**
 * What a Gaussian process is shown: losses that lie far above the middle one are told as less, since one run that all
 * but diverged would make all others look alike to it.
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
 * The next points of a Bayesian search, to be tried at once. Each is chosen as if those before it had given the mean of
 * what is known, so that they do not crowd. Pure: the same trials and seed give the same points, whatever order the
 * trials of a round end in.
 *
 * @returns fewer than `count` where every point near what is worth trying was tried.
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
    // A whole number, or one of four digits, may have been tried: the next best is one at random that was not.
    const point = taken.has(keyOf(near))
      ? randomPoints(ranges, taken.size + 1, seed + 1).find((other) => !taken.has(keyOf(other)))
      : near;
    if (point === undefined) break;
    taken.add(keyOf(point));
    points.push(point);
  }
  return points;
};
