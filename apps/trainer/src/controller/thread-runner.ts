import { RunError } from "@skein/cli/node";
import { createThreadWorld } from "@skein/collectives/node";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { Failures } from "./failures.ts";
import type { RankRunner } from "./rank-runner.ts";
import { RankThreads, trainingRank } from "../members/rank-threads.ts";
import { StopSignal } from "../rank/stop-signal.ts";

/**
 * Returns a runner that runs all ranks as threads of this process.
 * @param rankFile entry file of a rank's thread. Default: the trainer's own entry file.
 */
export const threadRunner = (rankFile?: URL): RankRunner => ({
  run: async ({ prepared, interruption, assignment, record }) => {
    const { ranks } = assignment.job;
    const firstStep = assignment.resume?.step ?? 0;
    const module = await compileWasm(await detectBuild());
    if (interruption.requested) throw new RunError("interrupted", "stopped before the first step; nothing was trained");
    const world = createThreadWorld({ worldSize: ranks, memory: createSharedMemory(), kernels: module });
    const stop = StopSignal.create(firstStep);
    interruption.listen(() => stop.decide(Math.max(stop.request(), firstStep + 1)));
    const failures = new Failures();
    interruption.onAbandoned((error) => failures.addOwn(error));
    const threads = new RankThreads({
      ...trainingRank(assignment, prepared!, module, stop, rankFile),
      world,
      ranks: Array.from({ length: ranks }, (_, rank) => rank),
      take: (rank, message) => record.take(rank, message, failures),
    });
    let failed = true;
    try {
      await Promise.race([
        threads.finished.then(() => (failures.all.length > 0 ? failures.first : undefined)),
        failures.first,
      ]);
      failed = false;
    } finally {
      interruption.listen(undefined);
      interruption.onAbandoned(undefined);
      if (failed) await threads.end();
      await world.close().catch((error: unknown) => {
        if (!failed) throw error; // if a rank failed, the first failure is reported
      });
    }
  },
});
