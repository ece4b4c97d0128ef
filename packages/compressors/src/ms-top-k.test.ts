import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aggregateWorld } from "../test/aggregate-world.ts";
import { msTopKCompressor } from "./ms-top-k.ts";
import { topKCompressor } from "./top-k.ts";

const select = async (
  gradient: readonly number[],
  density: number,
  samplings = 24,
): Promise<{ values: number[]; indices: number[] }> => {
  const compressor = msTopKCompressor({ density, samplings });
  const payload = await evaluate(
    (g: Tensor) => compressor.encode(g, []).payload,
    referenceBackend(),
  )(NdArray.from(gradient));
  return { values: payload.values.toNumbers(), indices: payload.indices.toNumbers() };
};

/**
 * Computes the paper's threshold bounds by bisection between mean and maximum, with a new count of entries in each
 * step.
 */
const bisect = (
  magnitudes: readonly number[],
  k: number,
  numSteps: number,
): { readonly upper: number; readonly lower: number } => {
  const mean = magnitudes.reduce((sum, v) => sum + v, 0) / magnitudes.length;
  const most = Math.max(...magnitudes);
  const reach = (t: number): number => magnitudes.filter((v) => v >= t).length;
  let [low, high] = [0, 1];
  let [upper, lower] = [Infinity, 0];
  for (let step = 0; step < numSteps; step++) {
    const r = (low + high) / 2;
    const t = mean + r * (most - mean);
    if (reach(t) <= k) [high, upper] = [r, t];
    else [low, lower] = [r, t];
  }
  return { upper, lower };
};

describe("msTopKCompressor", () => {
  const value = fc.oneof(
    fc.constantFrom(0, -0, 1, -1, 2),
    fc.float({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(1e20, 1e-30, 3e38).map(Math.fround),
  );

  it("sends exactly k different entries unchanged, for any gradient", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 1, maxLength: 40 }),
        fc.constantFrom(0.01, 0.1, 0.5, 0.9, 1),
        async (gradient, density) => {
          const { values, indices } = await select(gradient, density);
          expect(new Set(indices).size).toBe(Math.max(1, Math.floor(density * gradient.length)));
          expect(values).toEqual(indices.map((i) => gradient[i]));
        },
      ),
      { seed: 1, numRuns: 200 },
    );
  });

  it("finds the bracket of bisection, which reads the gradient once per step", async () => {
    for (const [seed, density] of [
      [1, 0.01],
      [2, 0.05],
      [3, 0.1],
      [4, 0.2],
    ] as const) {
      const gradient = normalArray([3000], seed).toNumbers();
      const { values } = await select(gradient, density, 8);
      const { upper, lower } = bisect(gradient.map(Math.abs), density * 3000, 7);
      const kept = values.map(Math.abs);
      expect(kept.filter((v) => v >= upper).length).toBe(gradient.filter((v) => Math.abs(v) >= upper).length);
      expect(Math.min(...kept)).toBeGreaterThanOrEqual(lower);
    }
  });

  it("equals top-k to the last bit of f32, and with fewer samplings to their level", async () => {
    const gradient = normalArray([20_000], 7).toNumbers();
    const exact = gradient.map(Math.abs).sort((a, b) => b - a);
    const [most, mean] = [exact[0]!, exact.reduce((sum, v) => sum + v, 0) / exact.length];
    for (const density of [0.001, 0.05, 0.6]) {
      const least = async (samplings: number): Promise<number> =>
        Math.min(...(await select(gradient, density, samplings)).values.map(Math.abs));
      const kth = exact[density * 20_000 - 1]!;
      for (const samplings of [6, 12, 18, 24]) {
        const level = most * (2 ** (1 - samplings) + 2 ** -22);
        expect(
          Math.abs((await least(samplings)) - kth),
          `${samplings} samplings at ${density}, mean ${mean}`,
        ).toBeLessThanOrEqual(level);
      }
    }
  });

  it("never omits the largest entry because of earlier ties, at any length", async () => {
    // With a sample: half of the entries are equal, and the largest come last.
    const n = 2 ** 18 + 64;
    const gradient = Array.from({ length: n }, (_, i) => (i >= n - 50 ? 1000 + i - n : i % 2));
    const { values, indices } = await select(gradient, 0.01);
    expect(Math.max(...values)).toBe(999);
    expect(indices.filter((i) => i >= n - 50).length).toBe(50);
  });

  it("declares a contraction if it reads all entries, and none with a sample", () => {
    const { contraction } = msTopKCompressor({ density: 0.001 });
    const of = (n: number): number | undefined => contraction!({ dtype: "f32", shape: [n] });
    expect(of(100_000)! / 0.001).toBeGreaterThan(0.9);
    expect(of(2 ** 18 + 1)! / 0.001).toBeGreaterThan(0.7);
    expect(of(832_000)).toBeUndefined();
    // Levels of 1/32 are too coarse for a bound.
    expect(
      msTopKCompressor({ density: 0.001, samplings: 6 }).contraction!({ dtype: "f32", shape: [1000] }),
    ).toBeUndefined();
  });

  it("equals top-k if magnitudes differ by more than a level", () => {
    const gradient = Array.from({ length: 200 }, (_, i) => (((i * 77) % 200) + 1) * (i % 3 === 0 ? -1 : 1));
    for (const density of [0.01, 0.1, 0.3, 0.7, 1])
      expect(aggregateWorld(msTopKCompressor({ density }), [gradient])).toEqual(
        aggregateWorld(topKCompressor({ density }), [gradient]),
      );
  });

  it("keeps the largest entries if fewer than k reach the mean", async () => {
    // biome-ignore format: short
    const heavy = uniformArray([500], 1, 2, 3).toNumbers().map((v, i) => (i === 100 || i === 400 ? 1e4 : v));
    const { values, indices } = await select(heavy, 0.1);
    expect(indices).toEqual(expect.arrayContaining([100, 400]));
    const kept = Math.min(...values);
    // A level is 2⁻²³ of the mean, 41.5: less than f32 resolves among these values.
    heavy.forEach((v, i) => expect(indices.includes(i) || v <= kept).toBe(true));
  });

  it("fills up from the lowest index among equal entries", async () => {
    expect((await select([3, 3, -3, 3, 3, 3, 3, 3, 3, 3], 0.3)).indices).toEqual([0, 1, 2]);
    expect((await select([0, 0, 0, 0], 0.5)).indices).toEqual([0, 1]);
  });

  it("rejects invalid densities and samplings", () => {
    expect(() => msTopKCompressor({ density: 2 })).toThrow(/density 2/);
    expect(() => msTopKCompressor({ density: 0.1, samplings: 30 })).toThrow(
      /samplings 30 is not an integer from 1 to 24; use 24/,
    );
  });
});
