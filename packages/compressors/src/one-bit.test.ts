import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { squares, stepOnce, worldGradients } from "../test/keyed-step.ts";
import { oneBitCompressor } from "./one-bit.ts";

const meanOf = (values: readonly number[]): number =>
  Math.fround(values.length === 0 ? 0 : values.reduce((sum, v) => sum + v, 0) / values.length);

describe("oneBitCompressor", () => {
  it("sends the means of nonnegative and of negative entries per block", () => {
    fc.assert(
      fc.property(worldGradients(3, 40), fc.integer({ min: 1, max: 12 }), (gradients, blockSize) => {
        const n = gradients[0]!.length;
        const size = Math.ceil(n / Math.ceil(n / blockSize));
        stepOnce(oneBitCompressor({ blockSize }), gradients).forEach(({ sent }, rank) => {
          const g = gradients[rank]!;
          const expected = g.map((v, i) => {
            const begin = Math.floor(i / size) * size;
            return meanOf(g.slice(begin, begin + size).filter((other) => other < 0 === v < 0));
          });
          sent.forEach((v, i) => expect(Math.abs(v - expected[i]!)).toBeLessThanOrEqual(1e-6 * Math.abs(expected[i]!)));
        });
      }),
      { numRuns: 60 },
    );
  });

  it("minimizes the squared error over both values", () => {
    const g = Array.from({ length: 64 }, (_, i) => Math.sin(i * i) + 0.3);
    const { sent } = stepOnce(oneBitCompressor(), [g])[0]!;
    const lost = (shiftUp: number, shiftDown: number): number =>
      squares(g.map((v, i) => v - sent[i]! - (v < 0 ? shiftDown : shiftUp)));
    for (const [up, down] of [
      [0.01, 0],
      [-0.01, 0],
      [0, 0.01],
      [0, -0.01],
    ] as const)
      expect(lost(up, down)).toBeGreaterThan(lost(0, 0));
  });

  it("spreads a non-finite entry to all entries with the same value, on all ranks", () => {
    for (const bad of [NaN, Infinity, -Infinity])
      for (const { mean } of stepOnce(oneBitCompressor(), [
        [1, -2, 3],
        [1, bad, 3],
        [0, 0, 0],
      ]))
        expect(mean[1]).not.toSatisfy(Number.isFinite);
  });
});
