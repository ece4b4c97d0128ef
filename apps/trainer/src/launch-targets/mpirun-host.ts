import { availableParallelism } from "node:os";
import { versionText } from "./launcher-process.ts";
import type { MpirunHost } from "./mpirun.ts";
import { parseMpirunVersion } from "./mpirun-version.ts";

/**
 * The mpirun first on PATH, and what its options go by on this machine.
 *
 * @throws LaunchError when there is none, or none that we know.
 */
export const mpirunHost = async (): Promise<MpirunHost> => ({
  version: parseMpirunVersion(await versionText("mpirun")),
  cores: availableParallelism(),
  root: process.getuid?.() === 0,
});
