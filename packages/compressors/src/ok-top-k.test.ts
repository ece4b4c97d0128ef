import { type Tensor, trace } from "@skein/tensor-core";
import { interpretWorld } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aggregateWorld, flatBucket } from "../test/aggregate-world.ts";
import { okTopKAggregator } from "./ok-top-k.ts";

const largest = (x: readonly number[], k: number): number[] =>
  x
    .map((_, i) => i)
    .sort((i, j) => Math.abs(x[j]!) - Math.abs(x[i]!) || i - j)
    .slice(0, k);

/** Returns the sum, over all ranks, of each rank's own top-k entries. */
const sumOfLargest = (gradients: readonly (readonly number[])[], k: number): number[] => {
  const sum = gradients[0]!.map(() => 0);
  for (const gradient of gradients) for (const i of largest(gradient, k)) sum[i]! += gradient[i]!;
  return sum;
};

describe("okTopKAggregator", () => {
  it("keeps exactly the k greatest of the summed entries, on 1 to 9 ranks, with ties and zeros", () => {
    const world = fc
      .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 14 }), fc.constantFrom(0.01, 0.25, 0.5, 1))
      .chain(([numRanks, n, density]) =>
        fc
          .array(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: n, maxLength: n }), {
            minLength: numRanks,
            maxLength: numRanks,
          })
          .map((gradients) => ({ gradients, density, k: Math.max(1, Math.floor(density * n)) })),
      );
    fc.assert(
      fc.property(world, ({ gradients, density, k }) => {
        const numRanks = gradients.length;
        const results = aggregateWorld(okTopKAggregator({ density }), gradients);
        const { mean } = results[0]!;
        for (const other of results) expect(other.mean).toEqual(mean);
        const sum = sumOfLargest(gradients, k);
        const share = Math.fround(1 / numRanks);
        const kept = mean.flatMap((value, i) => (value === 0 ? [] : [i]));
        for (const i of kept) expect(mean[i]).toBe(Math.fround(sum[i]! * share));
        const magnitudes = (positions: readonly number[]): number[] =>
          positions
            .map((i) => Math.abs(sum[i]!))
            .filter((size) => size > 0)
            .sort((a, b) => a - b);
        expect(magnitudes(kept)).toEqual(magnitudes(largest(sum, k)));
        results.forEach(({ sent }, rank) => {
          const own = new Set(largest(gradients[rank]!, k));
          expect(sent).toEqual(gradients[rank]!.map((value, i) => (own.has(i) && mean[i] !== 0 ? value + 0 : 0)));
        });
      }),
      { numRuns: 150 },
    );
  });

  it("agrees with the exact top-k of the sum on all indices for normal gradients", () => {
    const gradients = Array.from({ length: 8 }, (_, rank) => normalArray([64], rank).toNumbers());
    const { mean } = aggregateWorld(okTopKAggregator({ density: 6 / 64 }), gradients)[0]!;
    const kept = mean.flatMap((value, i) => (value === 0 ? [] : [i]));
    expect(kept).toEqual(largest(sumOfLargest(gradients, 6), 6).sort((a, b) => a - b));
  });

  /**
   * Returns the number of entries that each rank receives from each other rank in the first exchange, and the number of
   * bytes that all ranks send in both exchanges.
   */
  const traffic = (
    gradients: readonly (readonly number[])[],
    density: number,
  ): { loads: number[]; entriesSent: number; entriesKept: number } => {
    const numRanks = gradients.length;
    const bucket = flatBucket(gradients[0]!.length);
    const aggregator = okTopKAggregator({ density });
    const { graph } = trace(
      (gradient: Tensor) => aggregator.aggregate(gradient, [], bucket, { axis: "data" }).mean,
      [{ dtype: "f32", shape: bucket.shape }] as never,
      { mesh: { data: numRanks } },
    );
    const counts = ["ragged-all-to-all", "ragged-all-gather"].map((op) => ({
      node: graph.nodes.find((one) => one.op === op)!.id,
      output: 1,
    }));
    const inputs = gradients.map((gradient) => [{ spec: bucket, data: Float64Array.from(gradient) }]);
    const results = interpretWorld({ ...graph, outputs: counts }, inputs);
    const arrived = results.map(([rows]) => [...rows!.data]);
    const entriesKept = results[0]![1]!.data.reduce((sum, count) => sum + count, 0);
    const away = arrived.reduce(
      (sum, rows, rank) => sum + rows.reduce((own, count, from) => own + (from === rank ? 0 : count), 0),
      0,
    );
    return {
      loads: arrived.map((rows) => rows.reduce((sum, count) => sum + count, 0)),
      entriesSent: away + entriesKept * (numRanks - 1),
      entriesKept,
    };
  };

  const [numRanks, n, k] = [8, 4096, 128];
  const noise = (i: number, rank: number): number => ((i * 7919 + rank * 104_729) % 1000) / 1e6;
  const gradientsOf = (isHot: (i: number) => boolean): number[][] =>
    Array.from({ length: numRanks }, (_, rank) =>
      Array.from({ length: n }, (__, i) => (isHot(i) ? 1 : 0) + noise(i, rank)),
    );

  it.each([
    ["one layer", (i: number): boolean => i >= 1024 && i < 1024 + k],
    ["one column of a matrix of 32 columns", (i: number): boolean => i % 32 === 5],
    ["a few neighbours here and there", (i: number): boolean => i % 256 < 8],
  ])("distributes entries from %s evenly over ranks, and sends at most the declared bytes", (_, isHot) => {
    const { loads, entriesSent } = traffic(gradientsOf(isHot), k / n);
    expect(loads.reduce((sum, load) => sum + load, 0)).toBe(numRanks * k);
    expect(Math.max(...loads)).toBeLessThan(1.6 * k);
    const selection = (4 * 1024 * 2 * (numRanks - 1)) / numRanks + 4 * (numRanks - 1);
    const most = okTopKAggregator({ density: k / n }).bytesSent(flatBucket(n), numRanks) - selection;
    expect((8 * entriesSent) / numRanks).toBeLessThanOrEqual(most);
    expect((8 * entriesSent) / numRanks).toBeGreaterThan(0.75 * most);
  });

  it("sends no zeros to all ranks, and k entries if there are that many", () => {
    const some = (count: number): number[][] =>
      [0, 1, 2].map(() => Array.from({ length: 20 }, (_, i) => (i < count ? 1 : 0)));
    expect([0, 3, 5, 20].map((count) => traffic(some(count), 0.25).entriesKept)).toEqual([0, 3, 5, 5]);
  });

  it("rejects a density outside (0, 1]", () => {
    expect(() => okTopKAggregator({ density: 2 })).toThrow(/okTopKAggregator: density 2 is not in \(0, 1\]/);
  });
});
