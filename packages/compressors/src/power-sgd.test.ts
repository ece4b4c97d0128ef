import { NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bertBase, bertLarge, resNet } from "../test/architectures.ts";
import { hypot, lowRank, minus, withSingularValues } from "../test/matrices.ts";
import { runSingle } from "../test/single-precision.ts";
import { bucketOf, lengthOf } from "./bucket.ts";
import type { LowRankOptions } from "./low-rank.ts";
import { powerSgdAggregator } from "./power-sgd.ts";

/**
 * Runs several steps, and returns the mean of each step.
 *
 * @param steps gradients of all ranks per step, each a flat matrix `[n, m]`.
 */
const run = (
  shape: readonly number[],
  steps: readonly (readonly (readonly number[])[])[],
  options: LowRankOptions,
): number[][] => {
  const bucket = bucketOf([{ path: "w", shape }]);
  const aggregator = powerSgdAggregator(options);
  const ranks = steps[0]!.map((_, rank) => [steps.map((gradients) => NdArray.from(gradients[rank]!))] as const);
  const results = runSingle((gradients: readonly Tensor[]) => {
    let state = aggregator.init(bucket);
    return gradients.map((gradient) => {
      const result = aggregator.aggregate(gradient, state, bucket, { axis: "data" });
      state = result.state;
      return result.mean;
    });
  }, ranks as never) as unknown as NdArray[][];
  return results[0]!.map((mean) => mean.toNumbers());
};

const error = (expected: readonly number[], got: readonly number[]): number =>
  hypot(minus(expected, got)) / hypot(expected);

describe("powerSgdAggregator", () => {
  it("sends a constant gradient of its rank completely, although the ranks' gradients have a higher rank", () => {
    const arbitrary = fc
      .record({
        n: fc.integer({ min: 1, max: 12 }),
        m: fc.integer({ min: 1, max: 12 }),
        rank: fc.integer({ min: 1, max: 4 }),
        seed: fc.nat(1e6),
      })
      .chain((own) => fc.record({ own: fc.constant(own), actual: fc.integer({ min: 1, max: own.rank }) }));
    fc.assert(
      fc.property(arbitrary, ({ own: { n, m, rank, seed }, actual }) => {
        const expected = lowRank(n, m, actual, seed);
        const offset = normalArray([n * m], seed + 2).toNumbers();
        const ranks = [
          expected.map((v, i) => Math.fround(v + offset[i]!)),
          expected.map((v, i) => Math.fround(v - offset[i]!)),
        ];
        const means = run([n, m], [ranks, ranks], { rank, minimumCompression: 0 });
        expect(error(expected, means[1]!)).toBeLessThan(1e-4);
      }),
      { seed: 1 },
    );
  });

  it("comes as close as a matrix of its rank can, and no closer (Eckart and Young)", () => {
    const values = [8, 4, 2, 1, 0.5, 0.25];
    const gradient = withSingularValues(10, 6, values);
    for (const rank of [1, 2, 3, 5]) {
      const tail = hypot(values.slice(rank));
      const steps = Array.from({ length: 12 }, () => [gradient]);
      const lost = run([10, 6], steps, { rank, minimumCompression: 0 }).map((mean) => hypot(minus(gradient, mean)));
      for (const one of lost) expect(one).toBeGreaterThan(tail * (1 - 1e-5));
      expect(lost.at(-1)! / tail).toBeLessThan(1 + 1e-4);
      expect(lost[0]! / tail).toBeGreaterThan(1 + 1e-3); // there was an error to reduce
    }
  });

  it("recovers after a zero gradient, or one of lower rank", () => {
    const [n, m] = [9, 7];
    const full = lowRank(n, m, 3, 5);
    for (const before of [new Array<number>(n * m).fill(0), lowRank(n, m, 1, 6), lowRank(n, m, 2, 7)]) {
      const steps = [before, before, before, full, full].map((gradient) => [gradient]);
      const means = run([n, m], steps, { rank: 3, minimumCompression: 0 });
      expect(error(full, means.at(-1)!)).toBeLessThan(1e-4);
    }
  });

  it("handles gradients as large and as small as f32 permits", () => {
    for (const scale of [1e-30, 1e30]) {
      const gradient = lowRank(6, 5, 2, 8).map((v) => Math.fround(v * scale));
      const means = run([6, 5], [[gradient], [gradient]], { rank: 2, minimumCompression: 0 });
      expect(
        error(
          gradient.map((v) => v / scale),
          means[1]!.map((v) => v / scale),
        ),
      ).toBeLessThan(1e-4);
    }
  });

  it("views a convolution as [kh·kw·in, out], and sends small tensors unchanged", () => {
    const gradient = normalArray([3 * 3 * 8 * 16], 9).toNumbers();
    const [asKernel] = run([3, 3, 8, 16], [[gradient]], { rank: 2 });
    const [asMatrix] = run([72, 16], [[gradient]], { rank: 2 });
    expect(asKernel).toEqual(asMatrix);
    expect(error(gradient, asKernel!)).toBeGreaterThan(0.1);
    for (const shape of [[1152], [72, 16]]) expect(run(shape, [[gradient]], { rank: 8 })).toEqual([gradient]);
  });

  it("sends the published numbers of elements for ResNet-50, ResNet-152, BERT-Base and BERT-Large", () => {
    // With two ranks, a rank sends each byte once in an all-reduce.
    const elements = (shapes: readonly (readonly number[])[], rank: number): number =>
      powerSgdAggregator({ rank, minimumCompression: 0 }).bytesSent(
        bucketOf(shapes.map((shape, i) => ({ path: `${i}`, shape }))),
        2,
      ) / 4;
    expect(lengthOf(bucketOf(resNet([3, 4, 6, 3]).map((shape) => ({ path: "", shape }))))).toBe(25_557_032);
    expect(elements(resNet([3, 4, 6, 3]), 4)).toBe(164_360 + 273_844 - 54_120);
    expect(elements(resNet([3, 8, 36, 3]), 4)).toBe(459_272 + 830_900 - 152_424);
    expect(elements(bertBase(), 32)).toBe(3_851_396 + 2_910_524 - 154_940);
    expect(elements(bertLarge(), 32)).toBe(8_492_676 + 7_569_212 - 356_156);
  });

  it("rejects invalid ranks and limits", () => {
    expect(() => powerSgdAggregator({ rank: 0 })).toThrow(/rank 0 is not a positive integer; use an integer from 1/);
    expect(() => powerSgdAggregator({ rank: 2.5 })).toThrow(/rank 2.5/);
    expect(() => powerSgdAggregator({ rank: 2, minimumCompression: -1 })).toThrow(/minimumCompression -1/);
  });
});
