import { Worker } from "node:worker_threads";
import { createProcessWorld, newSecret, type ProcessWorld, type ProcessWorldOptions } from "../src/node.ts";
import type { ExpressAnswer, ExpressJob, ExpressRankData } from "./express-rank.ts";

/** A world with one `createProcessWorld` per rank, all in this process, which the ranks cannot detect. */
export interface ExpressWorld {
  readonly worlds: readonly ProcessWorld[];
  /** Run the job of each rank, and close its world if `endsAlone` returns true for it. */
  run(jobs: readonly ExpressJob[], endsAlone?: (rank: number) => boolean): Promise<ExpressAnswer[]>;
}

export const bytesPerRank: number = 2 ** 22;

/** Connect the ranks, run `body` with them, and close. */
export const withWorld = async (
  worldSize: number,
  settings: Partial<ProcessWorldOptions>,
  body: (world: ExpressWorld) => Promise<void>,
): Promise<void> => {
  const secret = newSecret();
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
