import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import { createSharedMemory } from "@skein/cpu-kernels";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";
import { jobFolder } from "./cli.ts";
import type { StopAnswer, StopRank } from "./stop-rank.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

// 640 digits in batches of 320: two steps per epoch, and an evaluation after every second step.
const settings = {
  overlap: "dear",
  batch: 320,
  "evaluation.everyEpochs": 1,
  checkpoint: {},
  compression: { kind: "identity" },
};

test.each([
  ["each for itself", false],
  ["together", true],
] as const)(
  "ranks that evaluate %s and receive a stop at different times run the same collectives, and stop after the same step",
  async (_, together) => {
    const overrides = Object.entries(settings).map(([path, value]) => ({
      path: path.split("."),
      value,
      origin: "test",
    }));
    const job = readJob(join(folder, "job.yaml"), overrides);
    const world = createThreadWorld({ worldSize: 2, memory: createSharedMemory(), kernels: "none" });
    const learns: readonly StopRank["learns"][] = ["after the step", "while it evaluates"];
    try {
      const answers = learns.map((moment, rank) => {
        const data: StopRank = { connection: world.connection(rank), job, step: 4, learns: moment, together };
        const worker = new Worker(fileURLToPath(new URL("./stop-rank.ts", import.meta.url)), { workerData: data });
        world.watch(rank, worker);
        return new Promise<StopAnswer>((resolve, reject) => worker.once("message", resolve).once("error", reject));
      });
      expect(await Promise.all(answers)).toEqual([
        { done: 4, saved: [4] },
        { done: 4, saved: [4] },
      ]);
    } finally {
      await world.close();
    }
  },
);
