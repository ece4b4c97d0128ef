import { dirname } from "node:path";
import { ConfigError } from "@skein/cli/node";
import { readTextFile } from "@skein/collectives/files";
import {
  type Job,
  type LocatedJob,
  maxJobBytes,
  only,
  type Override,
  parseLocated,
  type Path,
  startsWith,
  withAbsolutePaths,
} from "@skein/job/node";
import { sampleJob } from "../own-files.ts";
import { settleJob } from "./settle-job.ts";

/** Reads a job file. @throws ConfigError if the file cannot be read, is not a regular file, or is too large. */
export const readJobFile = (file: string): string => {
  try {
    return readTextFile(file, maxJobBytes).text;
  } catch (error) {
    throw new ConfigError([
      `${file}: cannot be read (${(error as Error).message}); name a job file, such as ${sampleJob()}`,
    ]);
  }
};

const readLocated = (file: string, overrides: readonly Override[]): readonly LocatedJob[] => {
  const folderOf = (path: Path): string =>
    overrides.some((override) => startsWith(path, override.path)) ? "." : dirname(file);
  return parseLocated(readJobFile(file), file, overrides).map(({ job, locationOf }) => ({
    job: withAbsolutePaths(job, folderOf),
    locationOf,
  }));
};

/**
 * Reads the job in a file, and makes all paths absolute. Paths in the file are relative to the folder of the file, and
 * paths on the command line are relative to the working directory.
 *
 * @throws ConfigError if the file is unreadable, the job is invalid, or the file has several jobs.
 */
export const readJob = (file: string, overrides: readonly Override[] = []): Job =>
  only(readLocated(file, overrides), file).job;

/** Reads the jobs of a file with one or several jobs, like `readJob`. */
export const readJobs = (file: string, overrides: readonly Override[] = []): readonly Job[] =>
  readLocated(file, overrides).map(({ job }) => job);

/**
 * Reads a job like `readJob`, and also checks the modules and the checkpoint that the job names, and adds their
 * digests.
 *
 * @throws ConfigError, also if a module rejects its options; ModuleError, PretrainedError.
 */
export const loadJob = async (file: string, overrides: readonly Override[] = []): Promise<Job> => {
  const { job, locationOf } = only(readLocated(file, overrides), file);
  return settleJob(job, locationOf);
};

/**
 * Reads a file with one or several jobs, each a YAML document, like `loadJob`.
 *
 * @throws the same errors as `loadJob`, with the invalid settings of all jobs.
 */
export const loadJobs = (file: string, overrides: readonly Override[] = []): Promise<readonly Job[]> =>
  Promise.all(readLocated(file, overrides).map(({ job, locationOf }) => settleJob(job, locationOf)));
