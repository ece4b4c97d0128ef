import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DataError } from "../errors.ts";
import { epochOrder } from "../order.ts";
import { Lane, type LaneOptions, type LanePosition } from "./lane.ts";
import type { ShardReader } from "./shard-position.ts";

/**
 * Returns a reader of shards in which sample i of shard s is `s:i`. Positions count samples, partly in `offset` and
 * partly in `skip`.
 */
const readerOf = (sizes: readonly number[], read: (name: string) => void = () => undefined): ShardReader<string> =>
  async function* (shard, { offset, skip }) {
    for (let i = 3 * offset + skip; i < sizes[shard]!; i++) {
      await Promise.resolve();
      const name = `${shard}:${i}`;
      read(name);
      yield { sample: name, position: { offset: Math.floor(i / 3), skip: i % 3 } };
    }
  };

/** Returns the samples of a lane in the order of its shards. */
const inOrder = (
  sizes: readonly number[],
  lane: number,
  { seed, numLanes, numShards }: LaneOptions,
  count: number,
): string[] => {
  const names: string[] = [];
  for (let at = lane; names.length < count; at += numLanes) {
    const shard = epochOrder(seed, Math.floor(at / numShards), numShards)[at % numShards]!;
    for (let i = 0; i < sizes[shard]!; i++) names.push(`${shard}:${i}`);
  }
  return names.slice(0, count);
};

const someLane = fc
  .record({
    sizes: fc.array(fc.nat(7), { minLength: 1, maxLength: 5 }).filter((sizes) => sizes.some((size) => size > 0)),
    numLanes: fc.integer({ min: 1, max: 5 }),
    blockSize: fc.integer({ min: 1, max: 9 }),
    seed: fc.nat(1000),
    lane: fc.nat(4),
    draws: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 }),
  })
  .map(({ sizes, lane, draws, ...others }) => ({
    sizes,
    draws,
    options: { ...others, numShards: sizes.length },
    lane: lane % others.numLanes,
  }));

describe("a lane", () => {
  test("draws the samples of each block once, in another order, before those of the next block", async () => {
    await fc.assert(
      fc.asyncProperty(someLane, async (some) => {
        const { sizes, lane, options, draws } = some;
        const drawn: string[] = [];
        const of = new Lane(readerOf(sizes), lane, options);
        for (const count of draws) {
          const { samples } = await of.draw(count);
          for (const { sample, block, index } of samples) expect(block[index]).toBe(sample);
          drawn.push(...samples.map(({ sample }) => sample));
        }
        const { blockSize } = options;
        const read = inOrder(sizes, lane, options, drawn.length + blockSize);
        for (let at = 0; at < drawn.length; at += blockSize) {
          const block = read.slice(at, at + blockSize);
          const taken = drawn.slice(at, at + blockSize);
          if (taken.length === blockSize) expect(taken.toSorted()).toEqual(block.toSorted());
          for (const sample of taken) expect(block).toContain(sample);
        }
      }),
    );
  });

  test("continues at its position, whatever was read ahead", async () => {
    await fc.assert(
      fc.asyncProperty(someLane, fc.nat(100), async (some, at) => {
        const { sizes, lane, options, draws } = some;
        const undisturbed = new Lane(readerOf(sizes), lane, options);
        const cut = at % draws.length;
        let position: LanePosition | undefined;
        for (const count of draws.slice(0, cut)) ({ position } = await undisturbed.draw(count));
        const resumed = new Lane(
          readerOf(sizes),
          lane,
          options,
          JSON.parse(JSON.stringify(position ?? null)) ?? undefined,
        );
        for (const count of [...draws.slice(cut), 9, 9])
          expect(await resumed.draw(count)).toEqual(await undisturbed.draw(count));
      }),
    );
  });

  test("has at most two blocks in memory", async () => {
    await fc.assert(
      fc.asyncProperty(someLane, async ({ sizes, lane, options, draws }) => {
        let [read, drawn] = [0, 0];
        const of = new Lane(
          readerOf(sizes, () => read++),
          lane,
          options,
        );
        for (const count of draws) {
          await of.draw(count);
          drawn += count;
          while (of.reading !== undefined) await of.reading;
          // Blocks read so far: all blocks up to the current one, and the next block.
          const begun = Math.ceil(drawn / options.blockSize);
          expect(read).toBe((begun + 1) * options.blockSize);
        }
      }),
    );
  });

  test("returns all blocks before an unreadable one", async () => {
    await fc.assert(
      fc.asyncProperty(someLane, fc.nat(30), async (some, bad) => {
        const { sizes, lane, options } = some;
        let read = 0;
        const failing = readerOf(sizes, () => {
          if (read++ === bad) throw new DataError("gone");
        });
        const of = new Lane(failing, lane, options);
        const whole = Math.floor(bad / options.blockSize) * options.blockSize;
        if (whole > 0) expect((await of.draw(whole)).samples).toHaveLength(whole);
        await expect(of.draw(1)).rejects.toThrow("gone");
        await expect(of.draw(1)).rejects.toThrow("gone");
      }),
    );
  });

  test("reports shards without samples", async () => {
    const options = { seed: 1, numShards: 3, numLanes: 2, blockSize: 4 };
    const of = new Lane(readerOf([0, 0, 0]), 1, options);
    await expect(of.draw(1)).rejects.toThrow(/^none of the 3 shards of the stream has a usable sample; /);
  });

  test("finds a single sample in any shard, although lanes visit shards at random", async () => {
    for (let seed = 0; seed < 40; seed++) {
      const of = new Lane(readerOf([0, 1]), 0, { seed, numShards: 2, numLanes: 2, blockSize: 2 });
      expect((await of.draw(5)).samples.map(({ sample }) => sample)).toEqual(Array.from({ length: 5 }, () => "1:0"));
    }
  });
});
