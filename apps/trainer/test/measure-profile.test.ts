import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import type { GradientProfile } from "@skein/cost-model";
import { createSharedMemory } from "@skein/cpu-kernels";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BackendName } from "../src/backend/backend.ts";
import { readJob } from "../src/job-file/load-job.ts";
import { hasAdapter } from "./adapter.ts";
import { jobFolder } from "./cli.ts";
import type { ProfileAnswer, ProfileRank } from "./profile-rank.ts";

const worldSize = 2;

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

/** Returns the profile measured by each rank of a small job on `backend`. */
const profilesOn = async (backend: BackendName): Promise<GradientProfile[]> => {
  const settings = { backend, "model.hidden": [64, 32], "buckets.kind": "mg-wfbp" };
  const overrides = Object.entries(settings).map(([path, value]) => ({ path: path.split("."), value, origin: "test" }));
  const job = { ...readJob(join(folder, "job.yaml"), overrides), backend };
  const world = createThreadWorld({ worldSize, memory: createSharedMemory(256 * 2 ** 20), kernels: "none" });
  try {
    return await Promise.all(
      Array.from({ length: worldSize }, async (_, rank) => {
        const data: ProfileRank = { connection: world.connection(rank), job };
        const worker = new Worker(fileURLToPath(new URL("./profile-rank.ts", import.meta.url)), { workerData: data });
        world.watch(rank, worker);
        const answer = await new Promise<ProfileAnswer>((resolve, reject) =>
          worker.once("message", resolve).once("error", reject),
        );
        if ("error" in answer) throw new Error(`rank ${rank}: ${answer.error}`);
        return answer.profile;
      }),
    );
  } finally {
    await world.close();
  }
};

describe.each<[BackendName, boolean]>([
  ["cpu", true],
  ["webgpu", hasAdapter],
])("a profile on %s", (backend, present) => {
  test.skipIf(!present)("has every gradient, last layer first, and the time between them", async () => {
    for (const { tensors } of await profilesOn(backend)) {
      expect(tensors.map(({ path }) => path).toSorted()).toEqual(
        [0, 1, 2].flatMap((i) => [`layers.${i}.bias`, `layers.${i}.weight`]),
      );
      expect(tensors.map(({ path }) => path.slice(0, 8))).toEqual([2, 2, 1, 1, 0, 0].map((i) => `layers.${i}`));
      expect(Object.fromEntries(tensors.map(({ path, bytes }) => [path, bytes]))).toMatchObject({
        "layers.0.weight": 4 * 784 * 64,
        "layers.2.bias": 4 * 10,
      });
      for (const { path, backwardSeconds } of tensors) expect(backwardSeconds, path).toBeGreaterThanOrEqual(0);
      // Compared per layer, because two gradients of the same layer may become ready together.
      for (const layer of [0, 1, 2]) {
        const own = tensors.filter(({ path }) => path.startsWith(`layers.${layer}.`));
        expect(own.reduce((sum, { backwardSeconds }) => sum + backwardSeconds, 0)).toBeGreaterThan(0);
      }
    }
  });
});
