import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluationBatches, trainingBatches } from "./batches.ts";
import { epochOrder, positionOf, stepsPerEpoch } from "./order.ts";
import { byteRecords } from "./records.ts";

const world = fc.record({
  perRank: fc.integer({ min: 1, max: 5 }),
  worldSize: fc.integer({ min: 1, max: 7 }),
  extra: fc.integer({ min: 0, max: 60 }),
  seed: fc.nat(),
  epoch: fc.nat({ max: 4 }),
});

const take = (count: number, options: Parameters<typeof trainingBatches>[1], steps: number): number[][] => {
  const batches = trainingBatches(count, options);
  return Array.from({ length: steps }, () => [...batches.next().value.indices]);
};

describe("laws of training batches", () => {
  test("shards partition each batch, and any world size sees the same batches", () => {
    fc.assert(
      fc.property(world, ({ perRank, worldSize, extra, seed, epoch }) => {
        const batchSize = perRank * worldSize;
        const count = batchSize + extra;
        const position = { epoch, step: 0 };
        const steps = stepsPerEpoch(count, batchSize) + 1; // into the next epoch
        const alone = take(count, { batchSize, seed, position, rank: 0, worldSize: 1 }, steps);
        const shards = Array.from({ length: worldSize }, (_, rank) =>
          take(count, { batchSize, seed, position, rank, worldSize }, steps),
        );
        alone.forEach((batch, step) => expect(shards.flatMap((shard) => shard[step]!)).toEqual(batch));
      }),
    );
  });

  test("an epoch holds every sample at most once, and exactly once if the batch size divides the count", () => {
    fc.assert(
      fc.property(world, ({ perRank, extra, seed, epoch }) => {
        const count = perRank + extra;
        const steps = stepsPerEpoch(count, perRank);
        const seen = take(
          count,
          { batchSize: perRank, seed, position: { epoch, step: 0 }, rank: 0, worldSize: 1 },
          steps,
        ).flat();
        expect(new Set(seen).size).toBe(steps * perRank);
        expect(seen.every((index) => index >= 0 && index < count)).toBe(true);
        expect(count - seen.length).toBeLessThan(perRank);
      }),
    );
  });

  test("resuming at a position continues the same batches", () => {
    fc.assert(
      fc.property(world, fc.nat({ max: 20 }), ({ perRank, extra, seed }, step) => {
        const count = perRank + extra;
        const options = { batchSize: perRank, seed, rank: 0, worldSize: 1 };
        const position = positionOf(step, stepsPerEpoch(count, perRank));
        expect(take(count, { ...options, position }, 3)).toEqual(take(count, options, step + 3).slice(step));
      }),
    );
  });

  test("epochs and seeds have different orders", () => {
    const order = (seed: number, epoch: number): string => epochOrder(seed, epoch, 100).join();
    expect(new Set([order(1, 0), order(1, 1), order(2, 0), order(2, 1)]).size).toBe(4);
    expect(order(1, 0)).toBe(order(1, 0));
  });

  test("rejects batches that cannot be filled or divided among ranks, with both numbers", () => {
    expect(() => take(10, { batchSize: 11, seed: 1, rank: 0, worldSize: 1 }, 1)).toThrow(
      "a batch of 11 samples cannot be filled from 10",
    );
    expect(() => take(10, { batchSize: 4, seed: 1, rank: 0, worldSize: 3 }, 1)).toThrow(
      "a batch of 4 samples is not divisible by 3 ranks; use a multiple of 3, such as 6",
    );
  });
});

describe("laws of evaluation batches", () => {
  test("every sample is unmasked exactly once over all ranks, in batches of one shape", () => {
    fc.assert(
      fc.property(world, ({ perRank, worldSize, extra }) => {
        const count = extra + 1;
        const records = byteRecords(count, {
          id: {
            bytes: Uint8Array.from({ length: count }, (_, i) => i),
            offsetBytes: 0,
            strideBytes: 1,
            dtype: "u8",
            shape: [],
          },
        });
        const counted = Array.from({ length: worldSize }, (_, rank) => [
          ...evaluationBatches(records, { batchSize: perRank * worldSize, rank, worldSize }),
        ]).flatMap((batches) =>
          batches.flatMap(({ batch, mask, validCount }) => {
            expect(batch["id"]!.shape).toEqual([perRank]);
            const ids = batch["id"]!.toNumbers().filter((_, i) => mask.toNumbers()[i] === 1);
            expect(ids.length).toBe(validCount);
            return ids;
          }),
        );
        expect(counted.sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      }),
    );
  });
});
