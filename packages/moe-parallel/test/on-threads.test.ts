import { Worker } from "node:worker_threads";
import { meshPartition } from "@skein/collectives";
import { createThreadWorld } from "@skein/collectives/node";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { flattenTree, type NdArray } from "@skein/tensor-core";
import { firstDifference } from "@skein/testing";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Answer,
  argumentsOf,
  denseSlots,
  forwardOf,
  type PostedRun,
  type RankData,
  rowsOf,
  toPosted,
  sizes,
  stepOf,
  worlds,
} from "./threads/walks.ts";
import { runRanks } from "./world.ts";

const runWorld = async (number: number): Promise<PostedRun[]> => {
  const { worldSize } = worlds[number]!;
  const module = await compileWasm(await detectBuild());
  const world = createThreadWorld({
    worldSize,
    memory: createSharedMemory(2 ** 28),
    kernels: module,
    timeoutMilliseconds: 30_000,
  });
  try {
    return await Promise.all(
      Array.from({ length: worldSize }, async (_, rank) => {
        const workerData: RankData = { number, connection: world.connection(rank), module };
        const worker = new Worker(new URL("./threads/rank.ts", import.meta.url), { workerData });
        world.watch(rank, worker);
        const answer = await new Promise<Answer>((resolve, reject) =>
          worker.once("message", resolve).once("error", reject),
        );
        if ("error" in answer) throw new Error(`rank ${rank}: ${answer.error}`);
        return answer;
      }),
    );
  } finally {
    await world.close();
  }
};

describe.each(worlds.map((world, number) => ({ ...world, number })))(
  "$worldSize ranks on threads",
  ({ number, worldSize, levels, walks, moves }) => {
    const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
    let answers: PostedRun[];
    beforeAll(async () => {
      answers = await runWorld(number);
    });

    test.each(walks.map((walk, i) => ({ name: walk.name, walk, i })))("$name: equals the reference", ({ walk, i }) => {
      const expected = runRanks(stepOf(walk) as never, ranks.map((rank) => argumentsOf(walk, rank)) as never, levels);
      ranks.forEach((rank) => {
        const leaves = flattenTree<NdArray>(expected[rank]).leaves;
        const { results } = answers[rank]!.steps[i]!;
        expect(results.map(({ dtype, shape }) => ({ dtype, shape }))).toEqual(
          leaves.map(({ dtype, shape }) => ({ dtype, shape: [...shape] })),
        );
        leaves.forEach((leaf, n) => {
          const numbers = leaf.toNumbers();
          const most = numbers.reduce((greatest, value) => Math.max(greatest, Math.abs(value)), 1);
          const tolerance = { absolute: 1e-4 * most, relative: 0 };
          expect(firstDifference(results[n]!.values, numbers, tolerance), `rank ${rank}, leaf ${n}`).toBeUndefined();
        });
      });
    });

    const choosing = walks.flatMap((walk, i) =>
      /softGate|expertChoice/.test(walk.name) ? [] : [{ name: walk.name, walk, i }],
    );

    test.each(choosing)("$name: sends the bytes of its dispatcher's formula in forward", ({ walk, i }) => {
      const { width } = sizes;
      const { way, numExperts, bytesSent } = walk;
      const others = (worldSize - 1) / worldSize;
      const forward = runRanks(
        forwardOf(walk) as never,
        ranks.map((rank) => argumentsOf(walk, rank).slice(0, 3)) as never,
        levels,
      ) as unknown as readonly { readonly load_E: NdArray; readonly hops: readonly NdArray[] }[];
      const sent = ranks.map((rank) => answers[rank]!.steps[i]!.bytesSent);
      if (bytesSent !== undefined) {
        expect(sent).toEqual(ranks.map(() => bytesSent));
        return;
      }
      if (way === "dense") {
        // All slots, in both directions.
        for (const bytes of sent) expect(bytes).toBe(2 * 4 * numExperts * denseSlots * width * others);
        return;
      }
      // Two ranks send what leaves a rank and returns to it, so the bytes of all ranks are counted together.
      const total = sent.reduce((a, b) => a + b, 0);
      if (way === "ragged") {
        const placement = [5, 0, 3, 1, 4, 2];
        const each = numExperts / worldSize;
        const leaving = forward.map(({ load_E }, rank) =>
          load_E.toNumbers().reduce((sum, load, e) => sum + (Math.floor(placement[e]! / each) === rank ? 0 : load), 0),
        );
        const rows = leaving.reduce((a, b) => a + b, 0);
        // Per rank: the counts of experts, and one number to each other rank for each ragged collective.
        const counts = worldSize * (4 * numExperts * others + 2 * 4 * (worldSize - 1));
        expect(total).toBe(2 * 4 * width * rows + counts);
        return;
      }
      // Per hop: a copy with its targets, and with its weights if it serves several experts; and the copy back.
      const numChoices = /of all experts/.test(walk.name) ? numExperts : /sigmoid/.test(walk.name) ? 2 : 1;
      const bytesOfCopy = way === "hierarchical" ? 4 * (width + 1) : 4 * (width + 2 * numChoices);
      const axes = Object.keys(levels).map((axis) => meshPartition(levels, axis));
      const inOrder = way === "hierarchical" ? axes.toReversed() : axes;
      const copies = forward.flatMap(({ hops }, rank) =>
        hops.map((leaving, hop) => {
          const position = inOrder[hop % axes.length]!.find((group) => group.includes(rank))!.indexOf(rank);
          return leaving.toNumbers().reduce((sum, count, to) => sum + (to === position ? 0 : count), 0);
        }),
      );
      const numChunks = forward[0]!.hops.length / axes.length;
      // Per chunk: an all-gather of expert counts, and one number for each of a hop's three ragged collectives.
      const counts = worldSize * numChunks * (4 * numExperts * (worldSize - 1) + 2 * 3 * 4);
      expect(total).toBe((bytesOfCopy + 4 * width) * copies.reduce((a, b) => a + b, 0) + counts);
    });

    test.skipIf(moves.length === 0)("experts that move take exactly the bytes of those that change their rank", () => {
      moves.forEach(([before, after], i) => {
        const rankOf = (place: number): number => Math.floor((place * worldSize) / before.length);
        ranks.forEach((rank) => {
          const { results, bytesSent } = answers[rank]!.moves[i]!;
          const expected = flattenTree<NdArray>(rowsOf(after, rank, worldSize)).leaves;
          expect(results).toEqual(expected.map(toPosted));
          const leaving = before.filter((place, expert) => rankOf(place) === rank && rankOf(after[expert]!) !== rank);
          // Four numbers of each row, and one count per tensor to each other rank.
          expect(bytesSent).toBe(4 * 4 * leaving.length + 2 * 4 * (worldSize - 1));
        });
      });
    });
  },
);
