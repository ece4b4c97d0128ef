import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluate, NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { beforeAll, describe, expect, it } from "vitest";
import type { Compressor } from "./compressor.ts";
import { gaussianKCompressor } from "./gaussian-k.ts";
import { rankInSample, sampleSizeOf } from "./magnitude-sample.ts";
import { msTopKCompressor } from "./ms-top-k.ts";
import type { SparsePayload } from "./sparse-payload.ts";
import { thresholdCompressor } from "./threshold.ts";

describe("sampleSizeOf", () => {
  it.each([
    [0, 0, 1],
    [2 ** 18, 1e5, 1],
    [1e6, 831, 1],
    [1e6, 10_000, 13],
    [25e6, 250_000, 181],
    [25e6, 25_000, 181],
    [25e6, 2500, 19],
    [1e9, 1e7, 7621],
  ])("of %d entries with %d sought: every %dth", (n, k, stride) => {
    expect(sampleSizeOf(n, k)).toEqual({ stride, count: Math.ceil(n / stride) });
  });
});

describe("rankInSample", () => {
  it("is k for a complete sample, for any margin", () => {
    for (const z of [-4, 0, 6]) expect(rankInSample(37, 1000, { stride: 1, count: 1000 }, z)).toBe(37);
  });

  it("is a share of k plus or minus deviations, and within the sample", () => {
    const size = { stride: 100, count: 10_000 };
    expect([-4, 0, 6].map((z) => rankInSample(10_000, 1e6, size, z))).toEqual([60, 100, 160]);
    expect(rankInSample(1, 1e6, size, -4)).toBe(1);
    expect(rankInSample(1e6, 1e6, size, 6)).toBe(10_000);
  });
});

describe("selection by a sample", () => {
  const n = 600_011;
  const k = 6000;
  let backend: Awaited<ReturnType<typeof createCpuBackend>>;
  beforeAll(async () => {
    backend = await createCpuBackend();
  });

  const select = async (
    compressor: Compressor<[], SparsePayload>,
    gradient: Float32Array,
  ): Promise<{ values: number[]; indices: number[] }> => {
    const payload = await evaluate(
      (g: Tensor) => compressor.encode(g, []).payload,
      backend,
    )(new NdArray("f32", [n], gradient));
    return { values: payload.values.toNumbers(), indices: payload.indices.toNumbers() };
  };
  const z = normalArray([n], 7).data as Float32Array;
  const shapes: readonly (readonly [string, Float32Array])[] = [
    ["normal", z],
    ["normal of mean 3", z.map((v) => v + 3)],
    ["log-normal of deviation 2", z.map((v) => Math.exp(2 * v))],
    ["columns of growing scale", z.map((v, i) => v * (1 + (i % 4096) / 100))],
    ["layers of different scale", z.map((v, i) => v * 10 ** -(Math.floor(i / 50_000) % 4))],
  ];
  const sorted = (gradient: Float32Array): Float32Array => gradient.map(Math.abs).toSorted();

  it.each(shapes)("%s: Gaussian-k sends k within four deviations", async (_, gradient) => {
    const { values, indices } = await select(gaussianKCompressor({ density: 0.01 }), gradient);
    const count = values.filter((v) => v !== 0).length;
    expect(Math.abs(count - k) / k).toBeLessThan(4 * Math.sqrt(1 / (k / 13)));
    expect(count).not.toBe(k); // the count is an estimate
    // Exactly the entries that reach a bound.
    const least = sorted(gradient)[n - count]!;
    expect(indices.slice(0, count)).toEqual([...gradient.keys()].filter((i) => Math.abs(gradient[i]!) >= least));
    indices.slice(0, count).forEach((index, i) => expect(values[i]).toBe(gradient[index]));
  });

  it.each(shapes)("%s: MSTopK sends exactly k, the largest to a level", async (_, gradient) => {
    const { values, indices } = await select(msTopKCompressor({ density: 0.01 }), gradient);
    expect(new Set(indices).size).toBe(k);
    indices.forEach((index, i) => expect(values[i]).toBe(gradient[index]));
    const magnitudes = sorted(gradient);
    const least = values.reduce((smallest, v) => Math.min(smallest, Math.abs(v)), Infinity);
    const dropped = magnitudes.filter((v) => v > least).length - values.filter((v) => Math.abs(v) > least).length;
    expect(magnitudes[n - k]! - least).toBeLessThan(magnitudes[n - 1]! / 2 ** 11);
    expect(dropped).toBeLessThan(k / 20);
  });

  it.each(shapes)("%s: a threshold that too many entries reach is raised", async (_, gradient) => {
    const { values } = await select(thresholdCompressor({ threshold: 1e-12, capacity: 0.01 }), gradient);
    const count = values.filter((v) => v !== 0).length;
    expect(count).toBeLessThan(k);
    expect(count).toBeGreaterThan(k - 8 * Math.sqrt(13 * k));
    expect(values.reduce((least, v) => (v === 0 ? least : Math.min(least, Math.abs(v))), Infinity)).toBe(
      sorted(gradient)[n - count],
    );
  });

  it("MSTopK sends all nonzero entries if there are fewer than k, at any indices", async () => {
    const gradient = Float32Array.from({ length: n }, (_, i) => (i % 1000 === 999 ? z[i]! : 0));
    const { values, indices } = await select(msTopKCompressor({ density: 0.01 }), gradient);
    const placed = indices.filter((_, i) => values[i] !== 0);
    expect(placed).toEqual([...gradient.keys()].filter((i) => gradient[i] !== 0));
  });

  it.each([
    ["Gaussian-k", gaussianKCompressor({ density: 1 })],
    ["MSTopK", msTopKCompressor({ density: 1 })],
    ["a threshold", thresholdCompressor({ threshold: 1e-30, capacity: 1 })],
  ])("%s sends everything at density 1", async (_, compressor) => {
    const { values, indices } = await select(compressor, z);
    const dense = new Float32Array(n);
    indices.forEach((index, i) => (dense[index]! += values[i]!));
    expect(dense.findIndex((v, i) => v !== z[i])).toBe(-1);
  });

  it.each([
    ["few reach the bound", z],
    ["more reach it than there is room for", new Float32Array(n).fill(1)],
  ])("a non-finite entry outside the sample makes all values NaN, with %s", async (_, gradient) => {
    for (const bad of [NaN, Infinity, -Infinity]) {
      const poisoned = gradient.with(n - 5, bad);
      for (const compressor of [
        gaussianKCompressor({ density: 0.01 }),
        msTopKCompressor({ density: 0.01 }),
        thresholdCompressor({ threshold: 0.5, capacity: 0.01 }),
      ]) {
        expect((await select(compressor, gradient)).values.every(Number.isFinite)).toBe(true);
        expect((await select(compressor, poisoned)).values.every(Number.isNaN)).toBe(true);
      }
    }
  });
});
