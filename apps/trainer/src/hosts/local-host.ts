import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTlsIdentity } from "@skein/collectives/node";
import { coordinatorFiles, writeCertificates } from "../certificates/certificate-folder.ts";
import type { Job } from "../job.ts";
import { processHost } from "./process-host.ts";
import type { RankHost } from "./rank-host.ts";
import { startLocalProcesses } from "./start-processes.ts";
import { startMpirun } from "./start-mpirun.ts";
import { threadHost } from "./thread-host.ts";

/** Where the ranks of a job run when this process starts them itself: all on this machine. */
export const localHost = (job: Job): RankHost => {
  switch (job.transport) {
    case "threads":
      return threadHost;
    case "tcp":
      return processHost({ start: startLocalProcesses() });
    case "mpi":
      return processHost({ start: startMpirun });
    case "tls": {
      const { certificates } = job.network;
      if (certificates !== undefined) return tlsHost(certificates);
      return {
        run: async (attempt) => {
          const folder = mkdtempSync(join(tmpdir(), "skein-certificates-"));
          try {
            await writeCertificates({
              folder,
              ranks: job.ranks,
              ranksPerProcess: job.network.ranksPerProcess,
              hosts: ["127.0.0.1", "localhost"],
              days: 1,
            });
            await tlsHost(folder).run(attempt);
          } finally {
            rmSync(folder, { recursive: true, force: true });
          }
        },
      };
    }
  }
};

const tlsHost = (folder: string): RankHost =>
  processHost({
    start: startLocalProcesses(folder),
    rendezvous: { security: readTlsIdentity(coordinatorFiles(folder)) },
  });
