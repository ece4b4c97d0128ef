import { axisIndex, NdArray, type Tensor, trace } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { squares, stepOnce, worldGradients } from "../test/keyed-step.ts";
import { runSingle } from "../test/single-precision.ts";
import { bucketOf } from "./bucket.ts";
import { exchange } from "./exchange.ts";
import { qsgdCompressor } from "./qsgd.ts";

const someLevels = [1, 3, 4, 7, 127] as const;

describe("qsgdCompressor", () => {
  // The same block repeated: each copy is rounded with its own random numbers, so that one run contains all draws.
  it.each(someLevels)("with %i levels is correct on average, within the theoretical variance", (levels) => {
    const block = [0.9, -0.31, 0.002, 0, -0.07, 0.5, 0.123, -0.6];
    const [d, draws] = [block.length, 3000];
    const norm = Math.sqrt(squares(block));
    const { sent } = stepOnce(
      qsgdCompressor({ levels, bucketSize: d }),
      [Array.from({ length: draws }, () => block).flat()],
      {
        seed: 7,
      },
    )[0]!;
    let deviation = 0;
    block.forEach((value, j) => {
      const drawn = Array.from({ length: draws }, (_, draw) => sent[draw * d + j]!);
      const mean = drawn.reduce((sum, v) => sum + v, 0) / draws;
      // The standard deviation of a draw is at most half a step; five standard errors are rarely exceeded.
      expect(Math.abs(mean - value)).toBeLessThan((5 * norm) / levels / 2 / Math.sqrt(draws) + 1e-6);
      deviation += squares(drawn.map((v) => v - value)) / draws;
    });
    const steps = block.map((v) => (Math.abs(v) / norm) * levels);
    const exact =
      steps.reduce((sum, y) => sum + (y - Math.floor(y)) * (1 - y + Math.floor(y)), 0) * (norm / levels) ** 2;
    expect(deviation / exact).toBeGreaterThan(0.9);
    expect(deviation / exact).toBeLessThan(1.1);
    expect(deviation).toBeLessThan(1.1 * Math.min(d / levels ** 2, Math.sqrt(d) / levels) * norm ** 2);
  });

  it("sends integer levels, none above s", () => {
    fc.assert(
      fc.property(
        worldGradients(2, 40),
        fc.constantFrom(...someLevels),
        fc.integer({ min: 1, max: 9 }),
        (gradients, levels, bucketSize) => {
          const n = gradients[0]!.length;
          const size = Math.ceil(n / Math.ceil(n / bucketSize));
          stepOnce(qsgdCompressor({ levels, bucketSize }), gradients).forEach(({ sent }, rank) => {
            sent.forEach((v, i) => {
              const begin = Math.floor(i / size) * size;
              const norm = Math.sqrt(squares(gradients[rank]!.slice(begin, begin + size)));
              const level = norm === 0 ? 0 : (v / norm) * levels;
              expect(Math.abs(level - Math.round(level))).toBeLessThan(1e-3);
              expect(Math.abs(Math.round(level))).toBeLessThanOrEqual(levels);
              // At most one step from the original value.
              expect(Math.abs(v - gradients[rank]![i]!)).toBeLessThanOrEqual((norm / levels) * (1 + 1e-5));
            });
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  it("keeps a single entry, and blocks of zeros, unchanged", () => {
    for (const levels of someLevels)
      expect(stepOnce(qsgdCompressor({ levels, bucketSize: 3 }), [[0, -5, 0, 0, 0, 0, 0.25, 0, 0]])[0]!.sent).toEqual([
        0, -5, 0, 0, 0, 0, 0.25, 0, 0,
      ]);
  });

  it("stays at level s if a random number next to 1 is rounded up to 1", () => {
    // In f32, 127 + (1 − 2⁻²⁴) is 128; this key draws such a number for one of these entries.
    const compressor = qsgdCompressor({ bucketSize: 1 });
    const [sent] = runSingle(
      (g: Tensor, key: Tensor) => {
        const bucket = bucketOf([{ path: "g", shape: g.shape }]);
        return compressor.aggregate(g, [], bucket, { axis: "data", key, rank: axisIndex("data") }).sent;
      },
      [[NdArray.from(new Float32Array(2048).fill(2)), NdArray.from([454, 0], [2], "u32")]],
    );
    expect(new Set(sent!.toNumbers())).toEqual(new Set([2]));
  });

  it("draws separately on each rank, and differently for each key", () => {
    const g = Array.from({ length: 200 }, (_, i) => Math.sin(i));
    const [first, second] = stepOnce(qsgdCompressor({ levels: 1 }), [g, g]);
    expect(first!.sent).not.toEqual(second!.sent);
    expect(stepOnce(qsgdCompressor({ levels: 1 }), [g], { seed: 1 })[0]!.sent).not.toEqual(
      stepOnce(qsgdCompressor({ levels: 1 }), [g])[0]!.sent,
    );
  });

  it("sends the number of bits per entry that its levels need", () => {
    const bucket = bucketOf([{ path: "g", shape: [1280] }]);
    expect([1, 3, 7, 15, 127].map((levels) => qsgdCompressor({ levels }).payloadBytes(bucket))).toEqual(
      [2, 3, 4, 5, 8].map((bits) => (1280 * bits) / 8 + 4 * 10),
    );
  });

  it("turns its block, and no other, into NaN for a non-finite entry", () => {
    for (const levels of [7, 127])
      for (const bad of [NaN, Infinity, -Infinity])
        for (const { mean } of stepOnce(qsgdCompressor({ levels, bucketSize: 2 }), [
          [1, 2, 3, 4],
          [1, 2, bad, 4],
        ]))
          expect(mean.map(Number.isFinite)).toEqual([true, true, false, false]);
  });

  it("rejects levels that do not fit in a byte, and an exchange without a key", () => {
    expect(() => qsgdCompressor({ levels: 128 })).toThrow(/128 levels/);
    expect(() => qsgdCompressor({ levels: 0 })).toThrow(/integer from 1 to 127/);
    expect(() =>
      trace((g) => exchange({ g }, [[]], { axis: "data", compressor: qsgdCompressor() }), [
        { dtype: "f32", shape: [4] },
      ] as never),
    ).toThrow(/no key was given/);
  });
});
