import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import type { NdArray } from "@skein/tensor-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lengthOf } from "../src/index.ts";
import { collectiveBytes, exchangedBytes, fixedBytes, raggedNodes } from "./collective-bytes.ts";
import { expectSameState, expectSameStep } from "./devices/closeness.ts";
import type { RankStep } from "./devices/compiled-step.ts";
import {
  type Answer,
  fromPosted,
  gradientOf,
  type PostedStep,
  type PostedWalk,
  type RankData,
  seed,
  steppersOf,
  type WorldWalk,
  worldWalks,
} from "./devices/world-walks.ts";
import { expectSameBits } from "./laws/law.ts";
import type { Stepper } from "./stepper.ts";
import { rows } from "./table.ts";
import { toReference } from "./world.ts";

/** Runs all rows on threads, with one worker per rank. Returns the results of each rank. */
const runWorld = async (worldSize: number): Promise<(readonly PostedWalk[])[]> => {
  const module = await compileWasm(await detectBuild());
  const world = createThreadWorld({
    worldSize,
    memory: createSharedMemory(2 ** 29),
    kernels: module,
    timeoutMilliseconds: 30_000,
  });
  try {
    return await Promise.all(
      Array.from({ length: worldSize }, async (_, rank) => {
        const workerData: RankData = { connection: world.connection(rank), module };
        const worker = new Worker(new URL("./devices/rank.ts", import.meta.url), { workerData });
        world.watch(rank, worker);
        const answer = await new Promise<Answer>((resolve, reject) =>
          worker.once("message", resolve).once("error", reject),
        );
        if ("error" in answer) throw new Error(`rank ${rank}: ${answer.error}`);
        return answer.walks;
      }),
    );
  } finally {
    await world.close();
  }
};

const toStep = ({ mean, sent, state }: PostedStep): RankStep => ({
  mean: fromPosted(mean),
  sent: fromPosted(sent),
  state: state.map(fromPosted),
});

const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Returns the number of bytes that a rank sends in a step: from the row's own formula or, for other aggregators of its
 * cycle and for halves (whose shards are padded), counted in the graph.
 */
const declaredBytes = (
  { row, bucket, inHalves }: WorldWalk,
  number: number,
  { graph }: Stepper,
  worldSize: number,
): number => (number % (row.period ?? 1) === 0 && !inHalves ? row.bytes(bucket, worldSize) : collectiveBytes(graph));

/** Whether a row sends 8 bytes per entry above a threshold to each other rank, if no entry is 0. */
const sendsItsEntries = ({ row, bucket }: WorldWalk): boolean =>
  /^(threshold|gaussian-k)/.test(row.name) && lengthOf(bucket) > 1;

/** Checks the results of one test case. @param ranks results of each rank. */
const checkWalk = (walk: WorldWalk, ranks: readonly PostedWalk[]): void => {
  const { row, bucket } = walk;
  const worldSize = ranks.length;
  const steppers = steppersOf(walk, worldSize);
  expectSameState(
    row,
    ranks.map(({ first }) => first.map(fromPosted)),
    steppers[0]!.init(),
  );
  ranks[0]!.steps.forEach((_, number) => {
    const own = ranks.map(({ steps }) => toStep(steps[number]!));
    for (const { mean } of own) expectSameBits(mean.toNumbers(), own[0]!.mean.toNumbers(), "the mean of another rank");
    const stepper = steppers[number % steppers.length]!;
    const gradients = ranks.map((__, rank) => gradientOf(bucket, rank, number).toNumbers());
    const before: readonly NdArray[][] = ranks.map(({ first, steps }) =>
      (number === 0 ? first : steps[number - 1]!.state).map(fromPosted),
    );
    expectSameStep(
      row,
      own,
      stepper.step(
        gradients,
        before.map((leaves) => leaves.map(toReference)),
        seed,
        number,
      ),
    );

    const counted = average(ranks.map(({ steps }) => steps[number]!.bytesSent));
    // Ragged collectives also send row counts, 4 bytes to each other rank.
    const counts = raggedNodes(stepper.graph).reduce(
      (sum, { params }) => sum + 4 * ((params["axisSize"] as number) - 1),
      0,
    );
    const declared = declaredBytes(walk, number, stepper, worldSize) + exchangedBytes(stepper.graph);
    expect(counted, "bytes sent, at most").toBeLessThanOrEqual(declared + counts + 1e-6);
    if (row.bytesAreMost !== true) expect(counted, "bytes sent").toBeCloseTo(declared + counts, 6);
    else if (number === 0)
      expect(counted, "bytes sent").toBeCloseTo(
        fixedBytes(stepper.graph) + exchangedBytes(stepper.graph) + stepper.raggedBytes(gradients, seed) + counts,
        6,
      );
    if (sendsItsEntries(walk)) {
      const entries = average(own.map(({ sent }) => sent.toNumbers().filter((value) => value !== 0).length));
      expect(counted, "bytes of the entries").toBeCloseTo(8 * entries * (worldSize - 1) + counts, 6);
    }
  });
  ranks.forEach(({ poisonedMean }, rank) => {
    if (poisonedMean.values.every(Number.isFinite))
      throw new Error(`the last rank has a NaN, but the mean of rank ${rank} is finite`);
  });
};

for (const { worldSizes, tags } of [
  { worldSizes: [3], tags: [] },
  { worldSizes: [2, 4], tags: ["full"] },
])
  describe.each(worldSizes)("%i ranks on threads", { tags }, (worldSize) => {
    let ranks: readonly (readonly PostedWalk[])[];
    beforeAll(async () => {
      ranks = await runWorld(worldSize);
    });

    it.each(rows)("$name: the reference's mean, equal bits, declared bytes", (row) => {
      worldWalks.forEach((walk, i) => {
        if (walk.row !== row) return;
        try {
          checkWalk(
            walk,
            ranks.map((walks) => walks[i]!),
          );
        } catch (error) {
          throw new Error(
            `${lengthOf(walk.bucket)} elements${walk.inHalves ? ", in halves" : ""}: ${(error as Error).message}`,
            {
              cause: error,
            },
          );
        }
      });
    });
  });
