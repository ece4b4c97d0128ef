import { NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hypot, minus } from "../test/matrices.ts";
import { runSingle } from "../test/single-precision.ts";
import { bucketOf } from "./bucket.ts";
import { withEf21 } from "./ef21.ts";
import { topKCompressor } from "./top-k.ts";

/** Runs EF21 on constant gradients. Returns the mean of each step, and each rank's sent part and estimate. */
const run = (gradients: readonly (readonly number[])[], k: number, numSteps: number) => {
  const bucket = bucketOf([{ path: "v", shape: [gradients[0]!.length] }]);
  const aggregator = withEf21(topKCompressor({ k }));
  const results = runSingle(
    (gradient: Tensor) => {
      let state = aggregator.init(bucket);
      return Array.from({ length: numSteps }, () => {
        const { mean, sent, state: next } = aggregator.aggregate(gradient, state, bucket, { axis: "data" });
        state = next;
        return { mean, sent, estimate: next.estimate };
      });
    },
    gradients.map((gradient): [NdArray] => [NdArray.from(gradient)]),
  );
  return results.map((steps) =>
    steps.map(({ mean, sent, estimate }) => ({
      mean: mean.toNumbers(),
      sent: sent.toNumbers(),
      estimate: estimate.toNumbers(),
    })),
  );
};

describe("withEf21", () => {
  it("converges to a constant gradient by 1 − k/n or better per step, and exactly in n/k steps", () => {
    const arbitrary = fc
      .integer({ min: 1, max: 20 })
      .chain((n) => fc.record({ n: fc.constant(n), k: fc.integer({ min: 1, max: n }), seed: fc.nat(1e6) }));
    fc.assert(
      fc.property(arbitrary, ({ n, k, seed }) => {
        const gradient = normalArray([n], seed).toNumbers();
        const [steps] = run([gradient], k, Math.ceil(n / k));
        const left = [gradient, ...steps!.map(({ estimate }) => minus(gradient, estimate))].map(
          (one) => hypot(one) ** 2,
        );
        left.slice(1).forEach((one, i) => expect(one).toBeLessThanOrEqual((1 - k / n) * left[i]! * (1 + 1e-6) + 1e-12));
        expect(left.at(-1)!).toBeLessThan(1e-10);
      }),
      { seed: 1, numRuns: 40 },
    );
  });

  it("sends the estimates, and the mean is theirs, although each rank accumulates it separately", () => {
    const ranks = run(
      [1, 2, 3].map((seed) => normalArray([24], seed).toNumbers()),
      2,
      30,
    );
    for (const [step, { mean }] of ranks[0]!.entries()) {
      const own = ranks.map((steps) => steps[step]!);
      for (const one of own) expect([one.mean, one.sent]).toEqual([mean, one.estimate]);
      mean.forEach((value, i) =>
        expect(Math.abs(own.reduce((sum, { estimate }) => sum + estimate[i]!, 0) / 3 - value)).toBeLessThan(1e-5),
      );
    }
    expect(hypot(ranks[0]!.at(-1)!.mean)).toBeGreaterThan(0.1);
  });
});
