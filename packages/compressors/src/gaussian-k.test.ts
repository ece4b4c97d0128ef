import { normalArray, uniformArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { aggregateWorld } from "../test/aggregate-world.ts";
import { gaussianKCompressor } from "./gaussian-k.ts";
import { twoSidedQuantile } from "./normal-quantile.ts";

const n = 10_000;
const z = normalArray([n], 7).toNumbers();
const u = uniformArray([n], 0, 1, 8).toNumbers();

const sentOf = (gradient: readonly number[], density: number): number[] =>
  aggregateWorld(gaussianKCompressor({ density }), [gradient])[0]!.sent;
const countOf = (gradient: readonly number[], density: number): number =>
  sentOf(gradient, density).filter((v) => v !== 0).length;
const energy = (values: readonly number[]): number => values.reduce((sum, v) => sum + v * v, 0);

describe("twoSidedQuantile", () => {
  it.each([
    [0.001, 3.2905],
    [0.01, 2.5758],
    [0.05, 1.96],
    [0.1, 1.6449],
    [0.3173, 1],
    [1, 0],
  ])("of %d is %d", (tail, quantile) => expect(twoSidedQuantile(tail)).toBeCloseTo(quantile, 4));

  it("continues into the far tail", () => {
    expect(twoSidedQuantile(1e-6)).toBeCloseTo(4.8916, 4);
    expect(twoSidedQuantile(1e-9)).toBeCloseTo(6.1094, 3);
  });
});

describe("gaussianKCompressor", () => {
  // The maximum excess over k at densities 0.01 and 0.1.
  const shapes: readonly (readonly [string, number, readonly number[]])[] = [
    ["normal", 0.02, z],
    ["normal of mean 3", 0.02, z.map((v) => v + 3)],
    ["normal, tiny", 0.02, z.map((v) => v * 1e-12)],
    ["uniform", 0.02, u.map((v) => v - 0.5)],
    ["logistic", 0.02, u.map((v) => Math.log((v + 1e-9) / (1 - v)))],
    ["log-normal of deviation 2", 0.02, z.map((v) => Math.exp(2 * v))],
    ["Cauchy", 0.02, u.map((v) => Math.tan(Math.PI * (v - 0.5)))],
    ["nine tenths zeros", 0.02, z.map((v, i) => (i % 10 === 0 ? v : 0))],
  ];

  it.each(shapes)("%s: sends k to (1 + %d)k entries, the largest", (_, excess, gradient) => {
    for (const density of [0.01, 0.1]) {
      const sent = sentOf(gradient, density);
      const [k, count] = [Math.floor(density * n), sent.filter((v) => v !== 0).length];
      expect(count).toBeGreaterThanOrEqual(k);
      expect(count).toBeLessThanOrEqual((1 + excess) * k + 1);
      const kept = Math.min(...sent.map(Math.abs).filter((v) => v > 0));
      expect(
        Math.max(...gradient.filter((__, i) => sent[i] === 0).map((v) => Math.abs(Math.fround(v)))),
      ).toBeLessThanOrEqual(kept);
    }
  });

  it.each([
    [0.001, 0.0127],
    [0.01, 0.0845],
    [0.05, 0.2791],
    [0.1, 0.4393],
  ])("keeps the theoretical energy of a normal gradient at density %d: %d (arXiv 1911.08772)", (density, share) => {
    // Evenly spaced quantiles, so that only the threshold has an error.
    const even = Array.from({ length: 4000 }, (_, i) => (i % 2 === 0 ? 1 : -1) * twoSidedQuantile((i + 0.5) / 4000));
    expect(energy(sentOf(even, density)) / energy(even)).toBeCloseTo(share, 2);
  });

  it("sends at most ⌈4k/3⌉ entries, for any ties", () => {
    const most = (k: number): number => Math.ceil((4 * k) / 3);
    // All magnitudes are equal, so none can be preferred.
    expect(countOf(new Array<number>(1000).fill(-2), 0.1)).toBe(most(100));
    // Sixty large entries and many ties below them: the ties do not fit.
    expect(
      countOf(
        Array.from({ length: 1000 }, (_, i) => (i % 16 === 0 && i < 960 ? 5 : 1)),
        0.1,
      ),
    ).toBe(60);
    // 110 equal entries at the top fit.
    expect(
      countOf(
        Array.from({ length: 1000 }, (_, i) => (i < 110 ? 5 : 1)),
        0.1,
      ),
    ).toBe(110);
    expect(countOf(new Array<number>(1000).fill(0), 0.1)).toBe(0);
  });

  it("is not misled by a dominant outlier", () => {
    const gradient = [...z.slice(0, 999), 1e30];
    const sent = sentOf(gradient, 0.1);
    const count = sent.filter((v) => v !== 0).length;
    expect(Math.abs(count - 101)).toBeLessThanOrEqual(1);
    const least = gradient.map(Math.abs).toSorted((a, b) => b - a)[count - 1]!;
    expect(sent.flatMap((v, i) => (v === 0 ? [] : [i]))).toEqual(
      gradient.flatMap((v, i) => (Math.abs(v) < least ? [] : [i])),
    );
  });

  it("rejects a density outside (0, 1]", () =>
    expect(() => gaussianKCompressor({ density: -1 })).toThrow(/density -1 is not in/));
});
