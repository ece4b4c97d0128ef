import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepOnce, worldGradients } from "../test/keyed-step.ts";
import { stepperOf } from "../test/stepper.ts";
import { agoqAggregator } from "./agoq.ts";
import { bucketOf } from "./bucket.ts";
import { withErrorFeedback } from "./error-feedback.ts";

describe("agoqAggregator", () => {
  it("rounds twice, for any number of ranks, and tracks its error", () => {
    fc.assert(
      fc.property(worldGradients(7), fc.integer({ min: 1, max: 12 }), (gradients, blockSize) => {
        const [numRanks, n] = [gradients.length, gradients[0]!.length];
        const shard = Math.ceil(n / numRanks);
        const rows = Math.ceil(shard / blockSize);
        const size = Math.ceil(shard / Math.max(1, rows));
        const steps = stepOnce(agoqAggregator({ blockSize }), gradients);
        const exact = gradients[0]!.map((_, i) => gradients.reduce((sum, g) => sum + g[i]!, 0));
        const inBlock = (g: readonly number[], i: number): number =>
          Math.max(...g.slice(Math.floor(i / size) * size, Math.floor(i / size) * size + size).map(Math.abs));
        const { mean } = steps[0]!;
        mean.forEach((v, i) => {
          const first = gradients.reduce((sum, g) => sum + inBlock(g, i), 0) / 254;
          const second = (inBlock(exact, i) + first) / 254;
          expect(Math.abs(v * numRanks - exact[i]!)).toBeLessThanOrEqual((first + second) * (1 + 1e-5));
          const sent = steps.reduce((sum, step) => sum + step.sent[i]!, 0);
          expect(Math.abs(sent - v * numRanks)).toBeLessThanOrEqual(
            1e-6 * Math.max(...gradients.map((g) => inBlock(g, i))),
          );
        });
        for (const step of steps) expect(step.mean).toEqual(mean);
      }),
      { numRuns: 80 },
    );
  });

  it("with error feedback loses nothing, even for gradients far below half a step", () => {
    // Next to 1000, a step is 7.9; without error feedback, an entry of 0.5 would always round to 0.
    const gradients = [0, 1, 2].map((rank) => [1000, 0.5, -0.25, rank, -1000, 0.125, 3, 0.5]);
    const [numRanks, numSteps] = [gradients.length, 200];
    const stepper = stepperOf(withErrorFeedback(agoqAggregator()), bucketOf([{ path: "g", shape: [8] }]), numRanks, {
      keyed: false,
    });
    let state = stepper.init();
    const total = new Array<number>(8).fill(0);
    for (let step = 0; step < numSteps; step++) {
      const result = stepper.step(gradients, state);
      result.mean[0]!.forEach((v, i) => (total[i]! += v));
      state = result.state.map((leaves) => [...leaves]);
    }
    total.forEach((sum, i) => {
      const exact = (numSteps * gradients.reduce((all, g) => all + g[i]!, 0)) / numRanks;
      // The residuals still contain at most a few quantization steps.
      expect(Math.abs(sum - exact)).toBeLessThan(3 * (1000 / 127));
    });
    expect(Math.abs(total[1]!)).toBeGreaterThan(80);
  });

  it("turns its block into NaN on all ranks for a non-finite entry, and no other block", () => {
    for (const bad of [NaN, Infinity, -Infinity])
      for (const { mean } of stepOnce(agoqAggregator({ blockSize: 2 }), [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [1, 2, 3, 4, 5, bad, 7, 8],
      ]))
        expect(mean.map(Number.isFinite)).toEqual([true, true, true, true, false, false, true, true]);
  });

  it("sends a quarter of the bytes of a dense all-reduce, plus the scales", () => {
    const bucket = bucketOf([{ path: "g", shape: [4096] }]);
    expect(agoqAggregator().bytesSent(bucket, 4)).toBe(2 * 3 * (1024 + 4 * 4));
  });
});
