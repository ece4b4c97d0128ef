import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { aggregateWorld } from "../test/aggregate-world.ts";
import { gTopKAggregator } from "./g-top-k.ts";

/** Entries of a group of ranks: for each index, the value of each rank, by rank number. */
type Group = ReadonlyMap<number, ReadonlyMap<number, number>>;

const sumOf = (parts: ReadonlyMap<number, number>): number =>
  [...parts.values()].reduce((sum, value) => sum + value, 0);

const greatest = (group: Group, k: number): Group =>
  new Map([...group].sort(([i, a], [j, b]) => Math.abs(sumOf(b)) - Math.abs(sumOf(a)) || i - j).slice(0, k));

const merge = (a: Group, b: Group, k: number): Group =>
  greatest(
    new Map(
      [...new Set([...a.keys(), ...b.keys()])].map((at) => [
        at,
        new Map([...(a.get(at) ?? new Map()), ...(b.get(at) ?? new Map())]),
      ]),
    ),
    k,
  );

/** Reference implementation of gTop-k with maps, in which each value records its rank. */
const model = (gradients: readonly (readonly number[])[], k: number): { mean: number[]; sent: number[][] } => {
  let groups = gradients.map((gradient, rank) =>
    greatest(new Map(gradient.map((value, i): [number, Map<number, number>] => [i, new Map([[rank, value]])])), k),
  );
  const core = 2 ** Math.floor(Math.log2(groups.length));
  groups = groups.slice(0, core).map((own, i) => (core + i < groups.length ? merge(own, groups[core + i]!, k) : own));
  while (groups.length > 1) groups = groups.flatMap((own, i) => (i % 2 === 0 ? [merge(own, groups[i + 1]!, k)] : []));
  const at = (i: number): ReadonlyMap<number, number> => groups[0]!.get(i) ?? new Map();
  return {
    mean: gradients[0]!.map((_, i) => Math.fround(sumOf(at(i)) * Math.fround(1 / gradients.length)) + 0),
    sent: gradients.map((gradient, rank) => gradient.map((_, i) => (at(i).get(rank) ?? 0) + 0)),
  };
};

describe("gTopKAggregator", () => {
  it("equals the merge of marked entries, on 1 to 9 ranks, with ties and zeros", () => {
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
        const results = aggregateWorld(gTopKAggregator({ density }), gradients);
        const { mean, sent } = model(gradients, k);
        for (const result of results) expect(result.mean).toEqual(mean);
        expect(results.map((result) => result.sent)).toEqual(sent);
      }),
      { numRuns: 150 },
    );
  });

  it("keeps an entry that was dropped on the way while another rank's entry survived", () => {
    // k = 1. Ranks 0 and 1 merge to 4 at index 1, which drops the 3 of rank 0 at index 0; ranks 2 and 3 merge to 11 at
    // index 0, which wins.
    const gradients = [
      [3, 0],
      [0, 4],
      [10, 0],
      [1, 0],
    ];
    const results = aggregateWorld(gTopKAggregator({ density: 0.5 }), gradients);
    expect(results.map(({ mean }) => mean)).toEqual(gradients.map(() => [11 / 4, 0]));
    expect(results.map(({ sent }) => sent)).toEqual([
      [0, 0],
      [0, 0],
      [10, 0],
      [1, 0],
    ]);
    // In the published method, an entry counts as sent if its index is in the result. So entries with a sum of 14 count
    // as sent although the mean is 11/4, and 3 is lost.
    const claimed = gradients.reduce((sum, [first]) => sum + first!, 0);
    expect(claimed - 4 * results[0]!.mean[0]!).toBe(3);
  });

  it("agrees with the exact top-k of the sum on about 0.55 of the indices for 8 ranks of 6 in 64 normal entries", () => {
    const [numRanks, n, k, trials] = [8, 64, 6, 100];
    const largest = (x: readonly number[]): number[] =>
      x
        .map((_, i) => i)
        .sort((i, j) => Math.abs(x[j]!) - Math.abs(x[i]!))
        .slice(0, k);
    let shared = 0;
    for (let trial = 0; trial < trials; trial++) {
      const gradients = Array.from({ length: numRanks }, (_, rank) => normalArray([n], 100 * trial + rank).toNumbers());
      const sum = new Array<number>(n).fill(0);
      for (const gradient of gradients) for (const i of largest(gradient)) sum[i]! += gradient[i]!;
      const { mean } = aggregateWorld(gTopKAggregator({ density: k / n }), gradients)[0]!;
      expect(mean.filter((value) => value !== 0).length).toBeLessThanOrEqual(k);
      shared += largest(sum).filter((i) => mean[i] !== 0).length;
    }
    // Simulated in the literature notes: 0.55. Random sets would share k/n = 0.09.
    expect(Math.abs(shared / (trials * k) - 0.55)).toBeLessThan(0.06);
  });

  it("counts 8k log₂P bytes for powers of two, plus two messages and a bit per entry for each further rank", () => {
    const { bytesSent } = gTopKAggregator({ density: 0.01 });
    const bucket = { dtype: "f32", shape: [10_000], tensors: [] } as const;
    expect([1, 2, 4, 8].map((numRanks) => bytesSent(bucket, numRanks))).toEqual([0, 800, 1600, 2400]);
    expect(bytesSent(bucket, 3)).toBeCloseTo((2 * 800 + 800 + (800 + 16)) / 3, 9);
  });

  it("rejects a density outside (0, 1]", () => {
    expect(() => gTopKAggregator({ density: 0 })).toThrow(/gTopKAggregator: density 0 is not in \(0, 1\]/);
  });
});
