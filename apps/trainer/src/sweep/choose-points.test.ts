import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gridPoints, randomPoints, suggestedPoints, type Tried } from "./choose-points.ts";
import { type Dimension, type Range, searchSpace } from "./search-space.ts";

const seeds = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

test("a grid is every combination once, the last key fastest", () => {
  expect(
    gridPoints([
      [1, 2],
      ["a", "b", "c"],
    ]),
  ).toEqual([
    [1, "a"],
    [1, "b"],
    [1, "c"],
    [2, "a"],
    [2, "b"],
    [2, "c"],
  ]);
});

describe("random points", () => {
  const space: readonly Dimension[] = searchSpace(["kind=sgd,adam"], ["rate=log:1e-4..1e-1", "width=int:1..9"]);

  test("are the same for a seed, all different, and more trials begin with the same ones", () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 }), (seed, few, more) => {
        const points = randomPoints(space, few + more, seed);
        expect(points).toHaveLength(few + more);
        expect(new Set(points.map((point) => JSON.stringify(point))).size).toBe(few + more);
        expect(randomPoints(space, few, seed)).toEqual(points.slice(0, few));
      }),
      { numRuns: 30 },
    );
  });

  test("are spread evenly over the logarithm of a learning rate", () => {
    const rates = randomPoints(space, 400, 7).map(([, rate]) => Math.log10(rate as number));
    for (const from of [-4, -3, -2]) {
      const share = rates.filter((rate) => rate >= from && rate < from + 1).length / rates.length;
      expect(share).toBeGreaterThan(0.25);
      expect(share).toBeLessThan(0.42);
    }
  });

  test("are as many as the space has", () => {
    expect(randomPoints(searchSpace(["kind=sgd,adam"], ["width=int:1..2"]), 10, 1)).toHaveLength(4);
  });
});

describe("a Bayesian search", () => {
  const ranges = searchSpace([], ["rate=log:1e-4..1", "decay=0..0.5"]) as readonly Range[];
  /**
   * Returns a simulated loss with its minimum at a learning rate of 0.01 and a decay of 0.1. Undefined, as for a failed
   * run, at learning rates above 0.3.
   */
  const loss = ([rate, decay]: readonly unknown[]): number | undefined =>
    (rate as number) > 0.3
      ? undefined
      : 0.2 + (Math.log10(rate as number) + 2) ** 2 + 4 * ((decay as number) - 0.1) ** 2;

  const searched = (seed: number, count: number, numTrials: number): Tried[] => {
    const tried: Tried[] = [];
    while (tried.length < numTrials)
      for (const point of suggestedPoints(ranges, tried, { count, seed })) tried.push({ point, loss: loss(point) });
    return tried;
  };
  const best = (tried: readonly Tried[]): number => Math.min(...tried.map((one) => one.loss ?? Infinity));

  test.each([1, 3])(
    "finds better points than random search with as many trials, %d at once, failures included",
    (count) => {
      const numSeeds = 6;
      let [suggested, random] = [0, 0];
      for (let seed = 0; seed < numSeeds; seed++) {
        suggested += best(searched(seed, count, 15));
        random += best(randomPoints(ranges, 15, seed).map((point) => ({ point, loss: loss(point) })));
      }
      expect(suggested).toBeLessThan(random);
      expect(suggested / numSeeds).toBeLessThan(0.3);
    },
  );

  test("tries nothing twice, stays within the ranges, and is reproducible", () => {
    for (const seed of [0, 5]) {
      const tried = searched(seed, 2, 10);
      expect(searched(seed, 2, 10)).toEqual(tried);
      expect(new Set(tried.map(({ point }) => JSON.stringify(point))).size).toBe(10);
      for (const { point } of tried)
        for (const [i, { low, high }] of ranges.entries()) {
          expect(point[i]).toBeGreaterThanOrEqual(low);
          expect(point[i]).toBeLessThanOrEqual(high);
        }
    }
  });

  test("ends when all points are tried", () => {
    const whole = searchSpace([], ["layers=int:1..3"]) as readonly Range[];
    const all = [1, 2, 3].map((point): Tried => ({ point: [point], loss: point }));
    expect(suggestedPoints(whole, all.slice(0, 2), { count: 5, seed: 0 })).toEqual([[3]]);
    expect(suggestedPoints(whole, all, { count: 2, seed: 0 })).toEqual([]);
  });

  test("is not misled by nearly diverged losses", () => {
    const wild: typeof loss = (point) => loss(point) ?? 1e12;
    let total = 0;
    for (let seed = 0; seed < 4; seed++) {
      const tried: Tried[] = [];
      for (let trial = 0; trial < 15; trial++)
        for (const point of suggestedPoints(ranges, tried, { count: 1, seed }))
          tried.push({ point, loss: wild(point) });
      expect(tried.some((one) => one.loss === 1e12)).toBe(true);
      total += best(tried);
    }
    expect(total / 4).toBeLessThan(0.25);
  });
});
