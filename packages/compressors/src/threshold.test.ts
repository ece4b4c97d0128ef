import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aggregateWorld, flatBucket } from "../test/aggregate-world.ts";
import { stepperOf } from "../test/stepper.ts";
import { withErrorFeedback } from "./error-feedback.ts";
import { thresholdCompressor } from "./threshold.ts";

describe("thresholdCompressor", () => {
  it("sends exactly the entries that reach the threshold, for any count per rank", () => {
    const gradients = [
      [1, -2, 0.5, 3, -0.4, 0],
      [0, 0, 0, 0, 0, 0],
      [9, 9, 9, 9, 9, -9],
    ];
    const ranks = aggregateWorld(thresholdCompressor({ threshold: 1, capacity: 1 }), gradients);
    expect(ranks.map(({ sent }) => sent)).toEqual([[1, -2, 0, 3, 0, 0], gradients[1], gradients[2]]);
    for (const { mean } of ranks) [10, 7, 9, 12, 9, -9].forEach((sum, i) => expect(mean[i]).toBeCloseTo(sum / 3, 6));
  });

  it("returns the number of rows to send", async () => {
    const compressor = thresholdCompressor({ threshold: 1, capacity: 1 });
    const count = async (values: readonly number[]): Promise<number[]> =>
      (
        await evaluate(
          (g: Tensor) => compressor.rows!(compressor.encode(g, []).payload),
          referenceBackend(),
        )(NdArray.from(values))
      ).toNumbers();
    expect(await count([0.1, 0.2, 0.3])).toEqual([0]);
    expect(await count([0.1, -2, 3])).toEqual([2]);
  });

  it("sends the largest entries if not all fit", () => {
    const arbitrary = fc.tuple(fc.integer({ min: 4, max: 40 }), fc.nat(1e6), fc.constantFrom(0.1, 0.25, 0.5));
    fc.assert(
      fc.property(arbitrary, ([n, seed, capacity]) => {
        const gradient = normalArray([n], seed).toNumbers();
        const { sent } = aggregateWorld(thresholdCompressor({ threshold: 0.01, capacity }), [gradient])[0]!;
        const kept = sent.map(Math.abs).filter((v) => v > 0);
        const dropped = gradient.filter((_, i) => sent[i] === 0).map(Math.abs);
        const room = Math.max(1, Math.floor(capacity * n));
        const expected = Math.min(room, gradient.filter((v) => Math.abs(v) >= 0.01).length);
        expect(kept.length).toBeLessThanOrEqual(expected);
        for (const lost of dropped) expect(lost).toBeLessThanOrEqual(Math.min(...kept));
        // Fewer only if the entries of one level, here less than 1 % wide, do not all fit.
        const next = dropped.filter((v) => v > Math.max(...dropped) * 0.99).length;
        if (kept.length < expected) expect(kept.length + next).toBeGreaterThan(expected);
      }),
      { seed: 1, numRuns: 40 },
    );
  });

  it("sends every entry eventually if more reach the threshold than fit", () => {
    const n = 20;
    const world = stepperOf(
      withErrorFeedback(thresholdCompressor({ threshold: 0.5, capacity: 0.1 })),
      flatBucket(n),
      1,
      { keyed: false },
    );
    const total = new Array<number>(n).fill(0);
    let state = world.init();
    for (let step = 0; step < 60; step++) {
      const stepped = world.step([new Array<number>(n).fill(1)], state);
      stepped.mean[0]!.forEach((value, i) => (total[i]! += value));
      state = stepped.state as typeof state;
    }
    // An entry waits for at most n / 2 steps; half a step more for entries of one level.
    for (const sum of total) expect(sum).toBeGreaterThanOrEqual(60 - 15);
  });

  it("makes all values NaN for a non-finite gradient, even if no entry reaches the threshold", () => {
    for (const bad of [NaN, Infinity]) {
      const ranks = aggregateWorld(thresholdCompressor({ threshold: 100, capacity: 0.2 }), [
        [1, 2, bad, 3, 4],
        [0, 0, 0, 0, 0],
      ]);
      for (const { mean } of ranks) expect(mean.some(Number.isNaN)).toBe(true);
    }
  });

  it("rejects an invalid threshold and an invalid capacity", () => {
    expect(() => thresholdCompressor({ threshold: 0, capacity: 0.1 })).toThrow(/threshold 0 is not a positive number/);
    expect(() => thresholdCompressor({ threshold: NaN, capacity: 0.1 })).toThrow(/threshold NaN/);
    expect(() => thresholdCompressor({ threshold: 1, capacity: 2 })).toThrow(/capacity 2 is not a share in \(0, 1\]/);
  });
});
