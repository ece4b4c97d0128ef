import { readTlsIdentity, type TlsIdentity } from "@skein/collectives/node";
import type { Job } from "@skein/job/node";
import { coordinatorFiles, issueIdentities } from "@skein/launch/node";
import { memberIdentity } from "../members/network-world.ts";
import { processRunner } from "./process-runner.ts";
import type { RankRunner } from "./rank-runner.ts";
import { startLocalProcesses } from "./start-processes.ts";
import { startMpirun } from "./start-mpirun.ts";
import { threadRunner } from "./thread-runner.ts";

/**
 * Delay before the first notice about processes that have not joined yet, and interval between notices, in
 * milliseconds. Both are long, because locally started processes join without user action, and a process that exits
 * early is detected separately.
 */
const localNotice = { afterMilliseconds: 10_000, everyMilliseconds: 10_000 };

/** Returns the runner of a job whose ranks are all started by this process on this machine. */
export const localRunner = (job: Job): RankRunner => {
  switch (job.transport) {
    case "threads":
      return threadRunner();
    case "tcp":
      return processRunner({ start: startLocalProcesses(), rendezvous: { notice: localNotice } });
    case "mpi":
      return processRunner({ start: startMpirun, rendezvous: { notice: localNotice } });
    case "tls": {
      const { certificates, ranksPerProcess } = job.network;
      if (certificates !== undefined)
        return tlsRunner(readTlsIdentity(coordinatorFiles(certificates)), (ranks) =>
          memberIdentity(certificates, ranks),
        );
      return {
        run: async (attempt) => {
          // Certificates are new for each attempt and exist only in memory, so that a killed run leaves no key behind.
          const issued = await issueIdentities({
            ranks: job.ranks,
            ranksPerProcess,
            hosts: ["127.0.0.1", "localhost"],
            days: Infinity,
          });
          await tlsRunner(issued.coordinator, (ranks) => issued.ranks[ranks[0]!]!).run(attempt);
        },
      };
    }
  }
};

const tlsRunner = (coordinator: TlsIdentity, identityOf: (ranks: readonly number[]) => TlsIdentity): RankRunner =>
  processRunner({ start: startLocalProcesses(identityOf), rendezvous: { security: coordinator, notice: localNotice } });
