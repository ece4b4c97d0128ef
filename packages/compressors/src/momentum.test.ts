import { NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { hypot, minus } from "../test/matrices.ts";
import { runSingle } from "../test/single-precision.ts";
import { bucketOf } from "./bucket.ts";
import { withEf21 } from "./ef21.ts";
import { identityCompressor } from "./identity.ts";
import { withMomentum } from "./momentum.ts";
import { topKCompressor } from "./top-k.ts";

const n = 24;
const bucket = bucketOf([{ path: "v", shape: [n] }]);

/** Returns the mean of each step on one rank, for one gradient per step. */
const meansOf = (
  aggregator: ReturnType<typeof withMomentum>,
  gradients: readonly (readonly number[])[],
): number[][] => {
  const [means] = runSingle(
    (...steps: readonly Tensor[]) => {
      let state = aggregator.init(bucket);
      return steps.map((gradient) => {
        const { mean, state: next } = aggregator.aggregate(gradient, state, bucket, { axis: "data" });
        state = next;
        return mean;
      });
    },
    [gradients.map((gradient) => NdArray.from(gradient))],
  );
  return means!.map((mean) => mean.toNumbers());
};

describe("withMomentum", () => {
  it("aggregates the running mean of gradients", () => {
    const gradients = [1, 2, 3, 4].map((seed) => normalArray([n], seed).toNumbers());
    const means = meansOf(withMomentum(identityCompressor(), { momentum: 0.75 }) as never, gradients);
    let velocity = new Array<number>(n).fill(0);
    gradients.forEach((gradient, step) => {
      velocity = velocity.map((v, i) => 0.75 * v + 0.25 * gradient[i]!);
      expect(hypot(minus(means[step]!, velocity))).toBeLessThan(1e-6);
    });
  });

  it("brings EF21 closer to a noisy gradient", () => {
    const gradient = normalArray([n], 99).toNumbers();
    const noisy = Array.from({ length: 120 }, (_, step) => {
      const noise = normalArray([n], step).toNumbers();
      return gradient.map((value, i) => value + 3 * noise[i]!);
    });
    const ef21 = withEf21(topKCompressor({ density: 0.25 }));
    const distance = (momentum: number): number => {
      const late = meansOf(withMomentum(ef21, { momentum }) as never, noisy).slice(60);
      return late.reduce((sum, mean) => sum + hypot(minus(mean, gradient)), 0) / late.length;
    };
    // The noise of a running mean with m = 0.9 is √((1 − m)/(1 + m)) = 0.23 times the noise of one gradient.
    expect(distance(0.9)).toBeLessThan(0.5 * distance(0));
  });

  it("rejects an invalid factor", () => {
    for (const momentum of [-0.1, 1, NaN])
      expect(() => withMomentum(identityCompressor(), { momentum })).toThrow(`momentum ${momentum}`);
  });
});
