import { threefry2x32 } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { googLeNet } from "@skein/published-measurements";
import { bestTrial, dearSearch, type Observation, type SearchBound, suggestTrial } from "./bayesian-optimisation.ts";
import { dearTimeline, halvesOf, planDear } from "./dear.ts";
import { fitGaussianProcess } from "./gaussian-process.ts";

const uniform = (seed: number, index: number): number => threefry2x32([seed, 99], [index, 0])[0] / 2 ** 32;
const normal = (seed: number, index: number): number =>
  Math.sqrt(-2 * Math.log(uniform(seed, 2 * index) + 2 ** -33)) * Math.cos(2 * Math.PI * uniform(seed, 2 * index + 1));

type Objective = (point: readonly number[]) => number;

const octaves: Objective = ([size]) => Math.log2(size! / 2 ** 20);

const objectives: Readonly<Record<string, { readonly f: Objective; readonly least: number }>> = {
  // A function with one minimum at 2⁵ MiB: it decreases from 1 to 0.2 while start-ups are saved, and then increases
  // while overlap is lost.
  convex: { f: (point) => 0.2 + ((octaves(point) - 5) / 5) ** 2, least: 0.2 },
  // A function with two local minima, at 2 MiB and at 64 MiB; the second minimum is lower.
  bimodal: {
    f: (point) => 1 - 0.5 * Math.exp(-((octaves(point) - 1) ** 2)) - 0.8 * Math.exp(-((octaves(point) - 6) ** 2)),
    least: 0.2,
  },
};

/** Returns the true function value at the best of ten trials, averaged over seeds. */
const bestFound = (
  f: Objective,
  choose: (trials: readonly Observation[], seed: number) => readonly number[],
  noise: number,
): number => {
  const numSeeds = 30;
  let total = 0;
  for (let seed = 0; seed < numSeeds; seed++) {
    const trials: Observation[] = [];
    for (let trial = 0; trial < dearSearch.numTrials; trial++) {
      const point = choose(trials, seed);
      trials.push({ point, value: f(point) + noise * normal(seed, trial) });
    }
    total += f(bestTrial(trials, dearSearch.bounds).point);
  }
  return total / numSeeds;
};

const atRandom = (trials: readonly Observation[], seed: number): readonly number[] => [
  2 ** (20 + 8 * uniform(seed + 1000, trials.length)),
];
const bySuggestion = (trials: readonly Observation[], seed: number): readonly number[] =>
  suggestTrial(trials, dearSearch.bounds, { ...dearSearch, seed });

describe.each(Object.entries(objectives))("ten trials of a %s function", (_, { f, least }) => {
  test.each([0, 0.03, 0.1])("with noise of deviation %f find a better point than ten random trials", (noise) => {
    const [suggested, random] = [bestFound(f, bySuggestion, noise), bestFound(f, atRandom, noise)];
    expect(suggested).toBeLessThan(random);
    expect(suggested - least).toBeLessThan(0.02 + 1.3 * noise);
  });
});

describe("suggest", () => {
  const { bounds } = dearSearch;

  test("begins at `start`, or in the middle; later points are within the bounds, and equal trials give equal points", () => {
    expect(suggestTrial([], bounds, dearSearch)).toEqual([25 * 2 ** 20]);
    expect(suggestTrial([], bounds)[0]! / 2 ** 24).toBeCloseTo(1, 9);
    const trials = [1, 256, 16, 16].map((size, i) => ({ point: [size * 2 ** 20], value: i }));
    for (let seed = 0; seed < 20; seed++) {
      const [size] = suggestTrial(trials, bounds, { seed });
      expect(size).toBeGreaterThanOrEqual(2 ** 20);
      expect(size).toBeLessThanOrEqual(2 ** 28);
      expect(suggestTrial(trials, bounds, { seed })).toEqual([size]);
    }
  });

  test("does not depend on the unit of the values", () => {
    const trials = [1, 200, 16].map((size) => ({
      point: [size * 2 ** 20],
      value: objectives.convex!.f([size * 2 ** 20]),
    }));
    const scaled = trials.map(({ point, value }) => ({ point, value: 1024 * value }));
    expect(suggestTrial(scaled, bounds)[0]! / suggestTrial(trials, bounds)[0]!).toBeCloseTo(1, 6);
  });

  test("handles equal points and equal values, and explores new regions", () => {
    const same = Array.from({ length: 6 }, () => ({ point: [2 ** 20], value: 3 }));
    const [size] = suggestTrial(same, bounds);
    expect(size).toBeGreaterThan(2 ** 23);
    const noisy = Array.from({ length: 6 }, (_, i) => ({ point: [2 ** 22], value: i % 2 }));
    expect(Number.isFinite(suggestTrial(noisy, bounds)[0])).toBe(true);
  });

  test("explores the point of largest uncertainty if no improvement is expected", () => {
    const trials = [1, 2].map((size, i) => ({ point: [size * 2 ** 20], value: i }));
    for (let seed = 0; seed < 5; seed++)
      expect(suggestTrial(trials, bounds, { seed, exploration: 1000 })[0]).toBeGreaterThan(2 ** 27);
  });

  test("works in two dimensions, one of them on a log scale", () => {
    const plane: readonly SearchBound[] = [
      { low: 1, high: 256, scale: "log" },
      { low: -1, high: 1 },
    ];
    const f = ([x, y]: readonly number[]): number => (Math.log2(x!) - 6) ** 2 / 16 + (y! - 0.5) ** 2;
    const trials: Observation[] = [];
    for (let trial = 0; trial < 25; trial++) {
      const point = suggestTrial(trials, plane);
      trials.push({ point, value: f(point) });
    }
    // The best of a hundred random points is within 0.02 of the minimum on average.
    expect(f(bestTrial(trials, plane).point)).toBeLessThan(0.02);
  });

  test("rejects invalid input", () => {
    expect(() => suggestTrial([], [{ low: 2, high: 1 }])).toThrow("the search bounds are 2 to 1");
    expect(() => suggestTrial([], [{ low: 0, high: 1, scale: "log" }])).toThrow("above 0 on a log scale");
    expect(() => suggestTrial([{ point: [1, 2], value: 1 }], bounds)).toThrow("a point must have 1 finite numbers");
    expect(() => suggestTrial([{ point: [2 ** 20], value: Number.NaN }], bounds)).toThrow("value NaN");
    expect(() => bestTrial([], bounds)).toThrow("bestTrial got 0 trials");
  });
});

test("bestTrial ignores a single lucky measurement", () => {
  const around = (size: number, ...values: number[]): Observation[] =>
    values.map((value) => ({ point: [size * 2 ** 20], value }));
  const trials = [...around(4, 1, 1.1, 0.3, 1, 1.05, 0.95), ...around(64, 0.5, 0.5, 0.45, 0.55, 0.5, 0.5)];
  expect(bestTrial(trials, dearSearch.bounds).point).toEqual([64 * 2 ** 20]);
});

test("a Gaussian process goes through what it is shown without noise, and knows least far away", () => {
  const points = [0, 0.2, 0.4, 0.6, 0.8, 1].map((x) => [x]);
  const predict = fitGaussianProcess(
    points,
    points.map(([x]) => 5 + Math.sin(3 * x!)),
  );
  for (const [x] of points) expect(predict([x!]).mean).toBeCloseTo(5 + Math.sin(3 * x!), 1);
  expect(predict([0.5]).mean).toBeCloseTo(5 + Math.sin(1.5), 1);
  expect(predict([0.2]).deviation).toBeLessThan(predict([0.3]).deviation);
  expect(predict([0.5]).deviation).toBeLessThan(predict([3]).deviation);
});

test("ten trials tune the buckets of DeAR over a traced network to within 2 % of the best of 200 sizes", () => {
  const halves = halvesOf({ startupSeconds: 4e-3, secondsPerByte: 1.5e-9 });
  const f: Objective = ([bytes]) => dearTimeline(googLeNet, planDear(googLeNet, bytes!), halves).iterationSeconds;
  const trials: Observation[] = [];
  for (let trial = 0; trial < dearSearch.numTrials; trial++) {
    const point = suggestTrial(trials, dearSearch.bounds, dearSearch);
    trials.push({ point, value: f(point) });
  }
  const best = Math.min(...Array.from({ length: 200 }, (_, i) => f([2 ** (20 + (8 * i) / 199)])));
  expect(f(bestTrial(trials, dearSearch.bounds).point)).toBeLessThan(1.02 * best);
});
