import { availableParallelism } from "node:os";
import { versionText } from "./launcher-process.ts";
import type { MpirunHost } from "./mpirun.ts";
import { parseMpirunVersion } from "./mpirun-version.ts";

/**
 * Detect the first mpirun on PATH, and the facts of this machine on which its options depend.
 *
 * @throws LaunchError if there is no mpirun, or an unknown one.
 */
export const mpirunHost = async (): Promise<MpirunHost> => ({
  version: parseMpirunVersion(await versionText("mpirun")),
  cores: availableParallelism(),
  root: process.getuid?.() === 0,
});
