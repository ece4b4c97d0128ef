import { Worker } from "node:worker_threads";
import { createProcessWorld, randomSecret, type ProcessWorld, type ProcessWorldOptions } from "../src/node.ts";
import type { ExpressAnswer, ExpressJob, ExpressRankData } from "./express-rank.ts";

/** A world with a separate `createProcessWorld` per rank. All ranks are in this process, which they cannot detect. */
export interface ExpressWorld {
  readonly worlds: readonly ProcessWorld[];
  /** Runs the job of each rank. A rank's world is closed after its job if `endsAlone` returns true for the rank. */
  run(jobs: readonly ExpressJob[], endsAlone?: (rank: number) => boolean): Promise<ExpressAnswer[]>;
}

export const bytesPerRank: number = 2 ** 22;

/** Connects the ranks, runs `body` with them, and closes the world. */
export const withWorld = async (
  worldSize: number,
  settings: Partial<ProcessWorldOptions>,
  body: (world: ExpressWorld) => Promise<void>,
): Promise<void> => {
  const secret = randomSecret();
  const worlds = await Promise.all(
    Array.from({ length: worldSize }, (_, rank) => {
      const memory = new WebAssembly.Memory({ initial: bytesPerRank / 65_536, maximum: 65_536, shared: true });
      const agreed = { worldSize, ranks: [rank], memory, kernels: "none", job: "test", build: "1", secret } as const;
      return createProcessWorld({ ...agreed, timeoutMilliseconds: 20_000, ...settings });
    }),
  );
  const roster = worlds.map(({ addresses }, rank) => ({ ...addresses[0]!, rank, process: rank, hostName: "here" }));
  await Promise.all(worlds.map((world) => world.connect(roster)));
  try {
    await body({
      worlds,
      run: (jobs, endsAlone = () => false) =>
        Promise.all(
          jobs.map(async (job, rank) => {
            const workerData: ExpressRankData = { connection: worlds[rank]!.connection(rank), job };
            const worker = new Worker(new URL("./express-rank.ts", import.meta.url), { workerData });
            const answer = await new Promise<ExpressAnswer>((resolve, reject) => {
              worker.once("message", resolve).once("error", reject);
            });
            if (endsAlone(rank)) await worlds[rank]!.close();
            return answer;
          }),
        ),
    });
  } finally {
    await Promise.all(worlds.map((world) => world.close()));
  }
};
