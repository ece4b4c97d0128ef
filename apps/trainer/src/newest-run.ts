import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { metricsFile } from "./metrics.ts";
import { jobFile } from "./output-folder.ts";
import { findRuns } from "./watch/find-runs.ts";

/** The run that a folder is; else, of the runs below it, the one that was written to last; else the folder itself. */
export const newestRun = async (folder: string): Promise<string> => {
  const holdsJob = (path: string): boolean => existsSync(join(path, jobFile));
  if (holdsJob(folder)) return folder;
  const below = (await findRuns(folder)).map((path) => join(folder, path)).filter(holdsJob);
  const writtenAt = new Map(below.map((path) => [path, statSync(join(path, metricsFile)).mtimeMs]));
  return below.toSorted((a, b) => writtenAt.get(b)! - writtenAt.get(a)!)[0] ?? folder;
};
