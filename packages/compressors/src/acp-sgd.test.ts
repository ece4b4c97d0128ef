import { NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { bertBase, bertLarge, resNet } from "../test/architectures.ts";
import { hypot, lowRank, minus, withSingularValues } from "../test/matrices.ts";
import { runSingle } from "../test/single-precision.ts";
import { acpSgdAggregator, acpSgdCycle } from "./acp-sgd.ts";
import type { Aggregator } from "./aggregator.ts";
import { bucketOf } from "./bucket.ts";
import { withErrorFeedback } from "./error-feedback.ts";
import { powerSgdAggregator } from "./power-sgd.ts";

/**
 * Runs several steps under alternating aggregators, and returns the mean of each step.
 *
 * @param steps gradients of all ranks per step, each a flat matrix `[n, m]`.
 */
const run = (
  cycle: readonly Aggregator[],
  shape: readonly number[],
  steps: readonly (readonly (readonly number[])[])[],
): number[][] => {
  const bucket = bucketOf([{ path: "w", shape }]);
  const ranks = steps[0]!.map((_, rank) => [steps.map((gradients) => NdArray.from(gradients[rank]!))] as const);
  const results = runSingle((gradients: readonly Tensor[]) => {
    let state = cycle[0]!.init(bucket);
    return gradients.map((gradient, step) => {
      const result = cycle[step % cycle.length]!.aggregate(gradient, state, bucket, { axis: "data" });
      state = result.state;
      return result.mean;
    });
  }, ranks as never) as unknown as NdArray[][];
  return results[0]!.map((mean) => mean.toNumbers());
};

const repeated = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const error = (expected: readonly number[], got: readonly number[]): number =>
  hypot(minus(expected, got)) / hypot(expected);
const options = { rank: 2, minimumCompression: 0 };

describe("acpSgdCycle", () => {
  it("does in two steps what PowerSGD does in one", () => {
    const ranks = [1, 2, 3].map((seed) => normalArray([9 * 6], seed).toNumbers());
    const two = run(acpSgdCycle(options), [9, 6], repeated(6, ranks));
    const one = run([powerSgdAggregator(options)], [9, 6], repeated(3, ranks));
    one.forEach((mean, step) => expect(error(mean, two[2 * step + 1]!)).toBeLessThan(1e-4));
    expect(error(one[0]!, one[2]!)).toBeGreaterThan(1e-3); // the steps differ, so that agreement is meaningful
  });

  it("sends a constant gradient of its rank completely after two steps, and never exceeds its rank", () => {
    const gradient = lowRank(8, 7, 2, 4);
    const means = run(acpSgdCycle(options), [8, 7], repeated(4, [gradient]));
    for (const mean of means.slice(1)) expect(error(gradient, mean)).toBeLessThan(1e-4);
    expect(error(gradient, means[0]!)).toBeGreaterThan(1e-3);

    const values = [4, 2, 1, 0.5];
    const high = withSingularValues(8, 7, values);
    const lost = run(acpSgdCycle(options), [8, 7], repeated(16, [high])).map((mean) => hypot(minus(high, mean)));
    for (const distance of lost) expect(distance).toBeGreaterThan(hypot(values.slice(2)) * (1 - 1e-5));
    expect(lost.at(-1)! / hypot(values.slice(2))).toBeLessThan(1 + 1e-4);
  });

  it("recovers after a zero gradient", () => {
    const [zero, gradient] = [new Array<number>(30).fill(0), lowRank(6, 5, 2, 3)];
    for (const asleep of [1, 2, 3, 4]) {
      const steps = [...repeated(asleep, zero), ...repeated(4, gradient)].map((own) => [own]);
      expect(error(gradient, run(acpSgdCycle(options), [6, 5], steps).at(-1)!)).toBeLessThan(1e-4);
    }
  });

  it("sends everything over time with error feedback", () => {
    const gradient = normalArray([48], 3).toNumbers();
    const cycle = acpSgdCycle({ rank: 1 }).map((one) => withErrorFeedback(one));
    const means = run(cycle, [8, 6], repeated(200, [gradient]));
    const average = gradient.map((_, i) => means.reduce((sum, mean) => sum + mean[i]!, 0) / means.length);
    expect(error(gradient, average)).toBeLessThan(0.1);
    expect(error(gradient, means[1]!)).toBeGreaterThan(0.3);
  });

  it("sends the published numbers of elements for ResNet-50, ResNet-152, BERT-Base and BERT-Large", () => {
    // With two ranks, a rank sends each byte once in an all-reduce. The published count views weights as [out, in], so
    // its P is our Q.
    const elements = (shapes: readonly (readonly number[])[], rank: number): number[] =>
      acpSgdCycle({ rank, minimumCompression: 0 }).map(
        (one) => one.bytesSent(bucketOf(shapes.map((shape, i) => ({ path: `${i}`, shape }))), 2) / 4,
      );
    expect(elements(resNet([3, 4, 6, 3]), 4)).toEqual([273_844, 164_360]);
    expect(elements(resNet([3, 8, 36, 3]), 4)).toEqual([830_900, 459_272]);
    expect(elements(bertBase(), 32)).toEqual([2_910_524, 3_851_396]);
    expect(elements(bertLarge(), 32)).toEqual([7_569_212, 8_492_676]);
  });

  it("rejects invalid ranks", () => {
    expect(() => acpSgdAggregator({ rank: 0, compute: "p" })).toThrow(
      /acpSgdAggregator: rank 0 is not a positive integer/,
    );
  });
});
