import { execFile } from "node:child_process";
import type { MpirunVersion } from "./mpirun-version.ts";

const shield = ["env", "--block-signal=TERM,INT,HUP,QUIT"] as const;

/**
 * The words before mpirun that keep signals to stop from it; its ranks get them all the same. A service manager signals
 * mpirun together with the ranks, and Open MPI would kill them within seconds, while they save.
 *
 * @returns nothing where `env` cannot block signals (before GNU coreutils 8.31), and for MPICH, which forwards them.
 */
export const stopShield = (version: MpirunVersion): Promise<readonly string[]> =>
  version === "hydra"
    ? Promise.resolve([])
    : new Promise((resolve) => {
        execFile(shield[0], [...shield.slice(1), "true"], (error) => resolve(error === null ? shield : []));
      });
