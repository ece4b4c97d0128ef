import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { squares, stepOnce, worldGradients } from "../test/keyed-step.ts";
import { bucketOf } from "./bucket.ts";
import { ternGradAggregator } from "./tern-grad.ts";

const greatestOf = (gradients: readonly (readonly number[])[]): number =>
  gradients.flat().reduce((greatest, v) => Math.max(greatest, Math.abs(v)), 0);

describe("ternGradAggregator", () => {
  it("sends −1, 0 or +1 times a scale common to all ranks, and adds them exactly", () => {
    fc.assert(
      fc.property(worldGradients(7), fc.nat(1000), (gradients, seed) => {
        const scale = greatestOf(gradients);
        const steps = stepOnce(ternGradAggregator({ clip: Infinity }), gradients, { seed });
        const levels = steps.map(({ sent }) => sent.map((v) => (scale === 0 ? 0 : v / scale)));
        levels.forEach((own, rank) =>
          own.forEach((level, i) => {
            const value = gradients[rank]![i]!;
            expect(value < 0 ? [0, 1] : value > 0 ? [0, -1] : [0]).toContain(-level + 0);
            if (Math.abs(value) === scale) expect(level + 0).toBe(Math.sign(value) + 0);
          }),
        );
        for (const { mean } of steps)
          mean.forEach((v, i) => {
            const sum = levels.reduce((total, own) => total + own[i]!, 0);
            expect(Math.abs(v - (sum * scale) / gradients.length)).toBeLessThanOrEqual(1e-6 * scale);
          });
      }),
      { numRuns: 60 },
    );
  });

  it("without clipping is correct on average, with the theoretical variance", () => {
    const block = [1, -0.31, 0.002, 0, -0.07, 0.5, 0.123, -0.6];
    const draws = 3000;
    const { sent } = stepOnce(
      ternGradAggregator({ clip: Infinity }),
      [Array.from({ length: draws }, () => block).flat()],
      {
        seed: 3,
      },
    )[0]!;
    let deviation = 0;
    block.forEach((value, j) => {
      const drawn = Array.from({ length: draws }, (_, draw) => sent[draw * block.length + j]!);
      const mean = drawn.reduce((sum, v) => sum + v, 0) / draws;
      expect(Math.abs(mean - value)).toBeLessThan((5 * 0.5) / Math.sqrt(draws));
      deviation += squares(drawn.map((v) => v - value)) / draws;
    });
    const exact = block.reduce((sum, v) => sum + Math.abs(v) * (1 - Math.abs(v)), 0);
    expect(deviation / exact).toBeGreaterThan(0.9);
    expect(deviation / exact).toBeLessThan(1.1);
  });

  it("clips at a multiple of the root mean square, and keeps a gradient of equal entries", () => {
    const g = [...Array.from({ length: 399 }, (_, i) => (i % 2 === 0 ? 1 : -1)), 100];
    const bound = 2.5 * Math.sqrt(squares(g) / g.length);
    const { sent } = stepOnce(ternGradAggregator(), [g])[0]!;
    expect(sent[399]).toBeCloseTo(bound, 4);
    // Each other entry is sent with probability 1/bound ≈ 0.078: 31 of 399, plus or minus 5.
    const numSent = sent.filter((v) => v !== 0).length;
    expect(numSent).toBeGreaterThan(10);
    expect(numSent).toBeLessThan(60);
    expect(stepOnce(ternGradAggregator(), [[-3, -3, -3, -3]])[0]!.sent).toEqual([-3, -3, -3, -3]);
    expect(stepOnce(ternGradAggregator(), [[0.5]])[0]!.sent).toEqual([0.5]);
  });

  it("has a scale per tensor: a small tensor keeps its signal next to a large one, clipped by its own deviation", () => {
    const bucket = bucketOf([
      { path: "large", shape: [40, 10] },
      { path: "small", shape: [400] },
      { path: "none", shape: [0] },
      { path: "dead", shape: [3] },
    ]);
    const wave = Array.from({ length: 400 }, (_, i) => Math.sin(i + 1) + (i === 7 ? 100 : 0));
    const ranks = [1, 3].map((factor) => [
      ...wave.map((v) => 1e6 * factor * v),
      ...wave.map((v) => 1e-3 * factor * v),
      0,
      0,
      0,
    ]);
    for (const clip of [2.5, Infinity]) {
      const steps = stepOnce(ternGradAggregator({ clip }), ranks, { bucket });
      const scaleOf = (values: readonly number[]): number => {
        const deviation = Math.sqrt(squares(values) / values.length);
        return Math.min(Math.max(...values.map(Math.abs)), clip * deviation);
      };
      for (const [begin, end] of [
        [0, 400],
        [400, 800],
      ] as const) {
        const scale = Math.max(...ranks.map((own) => scaleOf(own.slice(begin, end))));
        for (const { sent } of steps)
          for (const v of sent.slice(begin, end))
            expect([0, 1]).toContain(Math.round((1e4 * Math.abs(v)) / scale) / 1e4);
        expect(steps[1]!.sent.slice(begin, end).some((v) => v !== 0)).toBe(true);
      }
      expect(steps[0]!.mean.slice(800)).toEqual([0, 0, 0]);
    }
  });

  it("draws separately on each rank", () => {
    const g = Array.from({ length: 200 }, (_, i) => Math.sin(i));
    const [first, second] = stepOnce(ternGradAggregator(), [g, g]);
    expect(first!.sent).not.toEqual(second!.sent);
  });

  it("becomes non-finite on all ranks for one non-finite entry of one rank", () => {
    for (const clip of [2.5, Infinity])
      for (const bad of [NaN, Infinity, -Infinity])
        for (const { mean } of stepOnce(ternGradAggregator({ clip }), [
          [1, -2, 3],
          [1, bad, 3],
          [0, 0, 0],
        ]))
          expect(mean.map(Number.isFinite)).toEqual([false, false, false]);
  });

  it("rejects a bound of zero", () => {
    expect(() => ternGradAggregator({ clip: 0 })).toThrow(/above 0/);
  });
});
