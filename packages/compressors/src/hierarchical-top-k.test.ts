import { NdArray, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aggregateWorld, flatBucket } from "../test/aggregate-world.ts";
import { hostAxes } from "../test/host-axes.ts";
import { runWorld } from "../test/world.ts";
import { withErrorFeedback } from "./error-feedback.ts";
import { hierarchicalTopKAggregator } from "./hierarchical-top-k.ts";

const aggregator = (density: number, ranksPerHost: number) =>
  hierarchicalTopKAggregator({ density, inside: "inside", across: "across", ranksPerHost });

const worlds = fc
  .tuple(
    fc.constantFrom([1, 1], [1, 4], [2, 1], [2, 2], [3, 2], [2, 4], [4, 2], [3, 3]),
    fc.integer({ min: 1, max: 14 }),
    fc.constantFrom(0.01, 0.5, 1),
  )
  .chain(([[ranksPerHost, numHosts], n, density]) => {
    const numRanks = ranksPerHost! * numHosts!;
    const gradient = fc.array(fc.integer({ min: -4, max: 4 }), { minLength: n, maxLength: n });
    return fc
      .array(gradient, { minLength: numRanks, maxLength: numRanks })
      .map((gradients) => ({ ranksPerHost: ranksPerHost!, numHosts: numHosts!, density, gradients }));
  });

interface Shard {
  readonly begin: number;
  /**
   * Sum of the host's gradients over the range of the shard, including the shard's padding. `kept`: whether each entry
   * is sent.
   */
  readonly sums: readonly number[];
  readonly kept: readonly boolean[];
}

/** Returns the shard that a rank owns of the sum of gradients on its host. */
const shardOf = (
  gradients: readonly (readonly number[])[],
  ranksPerHost: number,
  rank: number,
  density: number,
): Shard => {
  const n = gradients[0]!.length;
  const length = Math.ceil(n / ranksPerHost);
  const host = Math.floor(rank / ranksPerHost);
  const begin = (rank % ranksPerHost) * length;
  const sums = Array.from({ length }, (_, i) =>
    gradients
      .slice(host * ranksPerHost, (host + 1) * ranksPerHost)
      .reduce((sum, own) => sum + (own[begin + i] ?? 0), 0),
  );
  const k = Math.max(1, Math.floor(density * length));
  const order = sums.map((_, i) => i).sort((i, j) => Math.abs(sums[j]!) - Math.abs(sums[i]!) || i - j);
  return { begin, sums, kept: sums.map((_, i) => order.indexOf(i) < k) };
};

describe("hierarchicalTopKAggregator", () => {
  it("sums exactly inside a host, and the top-k of each shard across hosts", () => {
    fc.assert(
      fc.property(worlds, ({ ranksPerHost, numHosts, density, gradients }) => {
        const results = aggregateWorld(aggregator(density, ranksPerHost), gradients, hostAxes(ranksPerHost, numHosts));
        const sum = gradients[0]!.map(() => 0);
        gradients.forEach((_, rank) => {
          const { begin, sums, kept } = shardOf(gradients, ranksPerHost, rank, density);
          sums.forEach((value, i) => {
            if (kept[i] && begin + i < sum.length) sum[begin + i]! += value;
          });
        });
        const share = Math.fround(1 / gradients.length);
        for (const { mean } of results) expect(mean).toEqual(sum.map((v) => Math.fround(v * share) + 0));
        const sent = sum.map((_, i) => results.reduce((total, own) => total + own.sent[i]!, 0) + 0);
        expect(sent).toEqual(sum.map((v) => v + 0));
      }),
    );
  });

  it("with error feedback, leaves the unsent part of a shard with its owner only", () => {
    const wrapped = (density: number, ranksPerHost: number) => withErrorFeedback(aggregator(density, ranksPerHost));
    fc.assert(
      fc.property(worlds, ({ ranksPerHost, numHosts, density, gradients }) => {
        const bucket = flatBucket(gradients[0]!.length);
        const rule = wrapped(density, ranksPerHost);
        const results = runWorld(
          (first: Tensor) => {
            const one = rule.aggregate(first, rule.init(bucket), bucket, { axis: "data" });
            const two = rule.aggregate(first, one.state, bucket, { axis: "data" });
            return [one.state.residual, two.state.residual] as const;
          },
          gradients.map((gradient) => [NdArray.from(gradient)]),
          hostAxes(ranksPerHost, numHosts),
        ) as unknown as [NdArray, NdArray][];
        let carried = gradients.map((gradient) => gradient.map(() => 0));
        for (const step of [0, 1] as const) {
          const accumulated = gradients.map((gradient, rank) => gradient.map((value, i) => value + carried[rank]![i]!));
          carried = accumulated.map((own, rank) => {
            const { begin, sums, kept } = shardOf(accumulated, ranksPerHost, rank, density);
            return own.map((_, i) => (kept[i - begin] === false ? sums[i - begin]! : 0));
          });
          expect(results.map((own) => own[step].toNumbers().map((v) => v + 0))).toEqual(
            carried.map((own) => own.map((v) => v + 0)),
          );
        }
      }),
    );
  });

  it("counts the bytes of shards padded to equal length", () => {
    const { bytesSent } = aggregator(0.1, 4);
    // 101 entries: shards of 26 entries, 2 of which are sent to each of two other hosts.
    expect(bytesSent(flatBucket(101), 12)).toBe(8 * 26 * 3 + 8 * 2 * 2);
    expect(() => bytesSent(flatBucket(101), 6)).toThrow(/6 ranks are not divisible by 4 ranks per host/);
  });

  it("rejects a mesh with other axis sizes, with the cure", () => {
    expect(() => aggregateWorld(aggregator(0.5, 2), [[1], [2], [3], [4]])).toThrow(
      /1 ranks along "inside" and 1 along "across", for 4 along "data" and 2 per host; .* name both axes in the mesh/,
    );
    expect(() => aggregateWorld(aggregator(0.5, 2), [[1], [2], [3], [4]], hostAxes(4, 1))).toThrow(
      /"inside" must have 2 ranks/,
    );
    expect(() => aggregator(0.5, 0)).toThrow(/ranksPerHost 0 is not a positive integer/);
    expect(() => aggregator(0, 2)).toThrow(/density 0/);
  });
});
