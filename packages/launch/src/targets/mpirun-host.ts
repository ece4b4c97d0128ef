import { availableParallelism } from "node:os";
import { versionText } from "./launcher-process.ts";
import type { MpirunHost } from "./mpirun.ts";
import { parseMpirunVersion } from "./mpirun-version.ts";

/**
 * Returns the version of the first mpirun on PATH, and properties of this machine that determine mpirun's options.
 *
 * @throws LaunchError if there is no mpirun, or its implementation is unknown.
 */
export const mpirunHost = async (): Promise<MpirunHost> => ({
  version: parseMpirunVersion(await versionText("mpirun")),
  cores: availableParallelism(),
  root: process.getuid?.() === 0,
});
