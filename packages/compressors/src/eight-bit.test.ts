import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepOnce, worldGradients } from "../test/keyed-step.ts";
import { eightBitCompressor } from "./eight-bit.ts";

describe("eightBitCompressor", () => {
  it("has an error of at most half a step of its block, and a whole step with random rounding", () => {
    fc.assert(
      fc.property(worldGradients(3), fc.integer({ min: 1, max: 12 }), (gradients, blockSize) => {
        const n = gradients[0]!.length;
        const size = Math.ceil(n / Math.ceil(n / blockSize));
        for (const [rounding, part] of [
          ["nearest", 0.5],
          ["stochastic", 1],
        ] as const)
          stepOnce(eightBitCompressor({ blockSize, rounding }), gradients).forEach(({ sent }, rank) => {
            const g = gradients[rank]!;
            sent.forEach((v, i) => {
              const begin = Math.floor(i / size) * size;
              const greatest = Math.max(...g.slice(begin, begin + size).map(Math.abs));
              expect(Math.abs(v - g[i]!)).toBeLessThanOrEqual((part * greatest * (1 + 2 ** -14)) / 127);
              if (Math.abs(g[i]!) === greatest) expect(Math.abs(v - g[i]!)).toBeLessThanOrEqual(1e-6 * greatest);
            });
          });
      }),
      { numRuns: 40 },
    );
  });

  it("is correct on average with stochastic rounding", () => {
    const block = [1, -0.3141, 0.002, 0, -0.0701, 0.5];
    const draws = 2000;
    const { sent } = stepOnce(eightBitCompressor({ blockSize: 6, rounding: "stochastic" }), [
      Array.from({ length: draws }, () => block).flat(),
    ])[0]!;
    block.forEach((value, j) => {
      const mean =
        Array.from({ length: draws }, (_, draw) => sent[draw * 6 + j]!).reduce((sum, v) => sum + v, 0) / draws;
      expect(Math.abs(mean - value)).toBeLessThan((5 * 0.5) / 127 / Math.sqrt(draws));
    });
  });

  it("turns its block, and no other, into NaN for a non-finite entry", () => {
    for (const { mean } of stepOnce(eightBitCompressor({ blockSize: 2 }), [
      [1, 2, 3, 4],
      [1, 2, -Infinity, 4],
    ]))
      expect(mean.map(Number.isFinite)).toEqual([true, true, false, false]);
  });
});
