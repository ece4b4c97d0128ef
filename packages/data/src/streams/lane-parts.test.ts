import fc from "fast-check";
import { expect, test } from "vitest";
import { shardRange } from "../order.ts";
import { lanePartsOf } from "./lane-parts.ts";
import { numLanesOf } from "./streamed-records.ts";

const someStream = fc
  .record({
    worldSize: fc.integer({ min: 1, max: 6 }),
    each: fc.integer({ min: 1, max: 12 }),
    numShards: fc.integer({ min: 1, max: 40 }),
    shardsAtOnce: fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
  })
  .map(({ each, numShards, ...others }) => ({
    ...others,
    batchSize: each * others.worldSize,
    shards: Array.from({ length: numShards }, (_, i) => `${i}`),
  }));

test("lanes divide a batch evenly, and each of its samples is on one rank", () => {
  fc.assert(
    fc.property(someStream, (some) => {
      const { batchSize, worldSize, shards, shardsAtOnce } = some;
      const numLanes = numLanesOf(some, some);
      expect(batchSize % numLanes).toBe(0);
      expect(numLanes).toBeLessThanOrEqual(Math.min(shards.length, shardsAtOnce ?? Math.max(8, worldSize)));
      if (shardsAtOnce !== undefined) expect(numLanesOf(some, { ...some, worldSize: 1 })).toBe(numLanes);
      const width = batchSize / numLanes;
      const owners = Array.from({ length: batchSize }, (): string[] => []);
      for (let rank = 0; rank < worldSize; rank++) {
        const range = shardRange(batchSize, { rank, worldSize });
        const parts = lanePartsOf(range, width, numLanes);
        for (const { lane, begin, end, at } of parts)
          for (let i = begin; i < end; i++) {
            expect(range.begin + at + i - begin).toBe(lane * width + i);
            owners[lane * width + i]!.push(`${rank}`);
          }
      }
      for (const [i, of] of owners.entries()) expect(of).toEqual([`${Math.floor(i / (batchSize / worldSize))}`]);
    }),
  );
});
