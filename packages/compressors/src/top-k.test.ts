import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { flatBucket } from "../test/aggregate-world.ts";
import { stepperOf } from "../test/stepper.ts";
import { topKCompressor, type TopKCompressorOptions } from "./top-k.ts";

const encode = async (
  values: readonly number[],
  options: TopKCompressorOptions,
): Promise<{ values: number[]; indices: number[] }> => {
  const compressor = topKCompressor(options);
  const payload = await evaluate(
    (g: Tensor) => compressor.encode(g, []).payload,
    referenceBackend(),
  )(NdArray.from(values));
  return { values: payload.values.toNumbers(), indices: payload.indices.toNumbers() };
};

describe("topKCompressor", () => {
  it("keeps the largest magnitudes with their signs, lower indices first among equals", async () => {
    expect(await encode([1, -5, 3, 0, 5, -3], { k: 3 })).toEqual({ values: [-5, 3, 5], indices: [1, 2, 4] });
    expect(await encode([2, -2, 2, -2], { k: 2 })).toEqual({ values: [2, -2], indices: [0, 1] });
    expect(await encode([7], { density: 0.01 })).toEqual({ values: [7], indices: [0] });
  });

  it("keeps nothing smaller than what it drops, and sends values unchanged", async () => {
    const arbitrary = fc
      .integer({ min: 1, max: 40 })
      .chain((n) =>
        fc.tuple(fc.array(fc.float({ noNaN: true }), { minLength: n, maxLength: n }), fc.integer({ min: 1, max: n })),
      );
    await fc.assert(
      fc.asyncProperty(arbitrary, async ([g, k]) => {
        const { values, indices } = await encode(g, { k });
        expect(new Set(indices).size).toBe(k);
        expect(values).toEqual(indices.map((i) => g[i]));
        const kept = Math.min(...values.map(Math.abs));
        const dropped = Math.max(0, ...g.filter((_, i) => !indices.includes(i)).map(Math.abs));
        expect(dropped).toBeLessThanOrEqual(kept);
      }),
    );
  });

  it("keeps the theoretical energy of a normal gradient (arXiv 1911.08772)", async () => {
    // Energy kept at density ρ: 2(zφ(z) + ρ/2) with z the two-sided quantile; 0.4393 at ρ = 0.1.
    const n = 20_000;
    const uniform = (i: number): number => (i * 0.6180339887498949 + 0.5 / n) % 1;
    const normal = Array.from(
      { length: n },
      (_, i) => Math.sqrt(-2 * Math.log((i + 0.5) / n)) * Math.cos(2 * Math.PI * uniform(i)),
    );
    const { values } = await encode(normal, { density: 0.1 });
    const energy = (list: readonly number[]): number => list.reduce((sum, v) => sum + v * v, 0);
    expect(1 - energy(values) / energy(normal)).toBeCloseTo(0.5607, 2);
  });

  it("sends a NaN, so that the step stops", async () => {
    expect((await encode([1, NaN, 100, 3], { k: 1 })).values).toEqual([NaN]);
  });

  it("sends values and indices in one message", () => {
    const { graph } = stepperOf(topKCompressor({ k: 3 }), flatBucket(8), 2, { keyed: false });
    const messages = graph.nodes.filter(({ op }) => op.endsWith("gather") && op !== "gather");
    expect(messages.map(({ op, specs }) => [op, specs[0]])).toEqual([["all-gather", { dtype: "u32", shape: [6, 2] }]]);
  });

  it("rejects an invalid density or k, with the cure", () => {
    expect(() => topKCompressor({ density: 0 })).toThrow(/density 0 is not in \(0, 1\]/);
    expect(() => topKCompressor({ density: 1.5 })).toThrow(/density 1.5/);
    expect(() => topKCompressor({ k: 0 })).toThrow(/integer from 1/);
  });
});
