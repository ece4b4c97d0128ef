import { readTlsIdentity, type TlsIdentity } from "@skein/collectives/node";
import { coordinatorFiles, issueIdentities } from "../certificates/certificate-folder.ts";
import type { Job } from "../job.ts";
import { memberIdentity } from "../members/network-world.ts";
import { processHost } from "./process-host.ts";
import type { RankHost } from "./rank-host.ts";
import { startLocalProcesses } from "./start-processes.ts";
import { startMpirun } from "./start-mpirun.ts";
import { threadHost } from "./thread-host.ts";

/** Processes that are started here come by themselves, and if one ends that is seen: a word on the wait only where it is long. */
const noticeOfOwn = { afterMilliseconds: 10_000, everyMilliseconds: 10_000 };

/** Where the ranks of a job run when this process starts them itself: all on this machine. */
export const localHost = (job: Job): RankHost => {
  switch (job.transport) {
    case "threads":
      return threadHost();
    case "tcp":
      return processHost({ start: startLocalProcesses(), rendezvous: { notice: noticeOfOwn } });
    case "mpi":
      return processHost({ start: startMpirun, rendezvous: { notice: noticeOfOwn } });
    case "tls": {
      const { certificates, ranksPerProcess } = job.network;
      if (certificates !== undefined)
        return tlsHost(readTlsIdentity(coordinatorFiles(certificates)), (ranks) => memberIdentity(certificates, ranks));
      return {
        run: async (attempt) => {
          // Anew for each attempt, and only in memory: a run that is killed leaves no key behind.
          const issued = await issueIdentities({ ranks: job.ranks, ranksPerProcess, hosts: ["127.0.0.1", "localhost"], days: 1 });
          await tlsHost(issued.coordinator, (ranks) => issued.ranks[ranks[0]!]!).run(attempt);
        },
      };
    }
  }
};

const tlsHost = (coordinator: TlsIdentity, identityOf: (ranks: readonly number[]) => TlsIdentity): RankHost =>
  processHost({ start: startLocalProcesses(identityOf), rendezvous: { security: coordinator, notice: noticeOfOwn } });
