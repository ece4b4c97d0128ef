import { execFile } from "node:child_process";
import type { MpirunVersion } from "./mpirun-version.ts";

const shield = ["env", "--block-signal=TERM,INT,HUP,QUIT"] as const;

/**
 * Returns a command prefix that blocks stop signals for mpirun, but not for its ranks. A service manager signals both
 * mpirun and the ranks. Without the prefix, Open MPI would kill the ranks within seconds, before their checkpoint is
 * saved.
 *
 * @returns an empty prefix if `env` cannot block signals (before GNU coreutils 8.31), and for MPICH, which forwards
 * signals.
 */
export const stopShield = (version: MpirunVersion): Promise<readonly string[]> =>
  version === "hydra"
    ? Promise.resolve([])
    : new Promise((resolve) => {
        execFile(shield[0], [...shield.slice(1), "true"], (error) => resolve(error === null ? shield : []));
      });
