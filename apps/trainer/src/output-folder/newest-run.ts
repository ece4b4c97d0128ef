import { existsSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { ConfigError, resumeLine } from "@skein/cli/node";
import { findRuns, metricsFile, readRunFiles, stateOf } from "@skein/run-files/node";
import { jobFile } from "./output-folder.ts";

/**
 * Returns the folder of a run: `folder` if it contains a run, otherwise the most recently written run below `folder`.
 * Returns `folder` if no run is found.
 *
 * @throws ConfigError if the run was found below `folder` and is still training, because two programs would then write
 * to the folder of the run.
 */
export const newestRun = async (folder: string): Promise<string> => {
  const holdsJob = (path: string): boolean => existsSync(join(path, jobFile));
  if (holdsJob(folder)) return folder;
  const [newest] = findRuns(folder)
    .map((id) => join(folder, id))
    .filter(holdsJob)
    .map((path) => ({ path, writtenAt: statSync(join(path, metricsFile)).mtimeMs }))
    .toSorted((a, b) => b.writtenAt - a.writtenAt);
  if (newest === undefined) return folder;
  const { path } = newest;
  if (stateOf(newest, await readRunFiles(path), 0, Date.now(), hostname()).state === "running")
    throw new ConfigError([
      `${path} is the run that was written to last, and seems to be still training; stop it on its machine, or, if it does not run, name it: ${resumeLine(path)}`,
    ]);
  return path;
};
