import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkpointsFolder } from "@skein/checkpoints/node";
import {
  CheckpointError,
  ConfigError,
  explainPath,
  makeFolders,
  nodeFiles,
  removeEmpty,
  replaceDurably,
  requireFolder,
  resumeLine,
} from "@skein/cli/node";
import { type Job, maxJobBytes, type Override } from "@skein/job/node";
import { changesFile, jobFile, metricsFile, provenanceFile, routingFile, summaryFile } from "@skein/run-files/node";
import { loadJob, readJob } from "../job-file/load-job.ts";

export { jobFile, summaryFile };

/** Output folder of a new run. */
export interface ClaimedFolder {
  readonly path: string;
  /**
   * Folders that were created for `path`, outermost first. Contains `path` if the folder is new, so that no other run
   * uses it.
   */
  readonly made: readonly string[];
}

const otherFolder = "name a folder that you may write to";
const nameFolder = "name a folder that you may write to with --output <folder>";

/** Checks that a run can write all of its files to its output folder. @throws ConfigError. */
export const requireOutput = (output: string): void =>
  requireFolder(output, `output folder ${output}`, {
    files: [jobFile, metricsFile, summaryFile, routingFile, provenanceFile],
    folders: [checkpointsFolder("")],
  });

/**
 * Requires that a folder does not contain a run.
 * @throws ConfigError if the folder already contains a run.
 */
export const requireNoRun = (asked: string): void => {
  if (existsSync(join(asked, jobFile)))
    throw new ConfigError([
      `--output ${asked}: the folder already holds a run; continue that run with ${resumeLine(asked)}, or name another folder`,
    ]);
};

/**
 * Creates a new output folder: the requested folder, or `runs/<job name>/<1, 2, …>` in the working folder.
 *
 * @throws ConfigError if the folder already contains a run.
 */
export const claimOutput = (name: string, asked: string | undefined): ClaimedFolder => {
  if (asked !== undefined) {
    requireNoRun(asked);
    try {
      return { path: asked, made: makeFolders(asked) };
    } catch (error) {
      throw explainPath(error, `--output ${asked}`, otherFolder);
    }
  }
  let above: string[];
  try {
    above = makeFolders(join("runs", name));
  } catch (error) {
    throw explainPath(error, join("runs", name), nameFolder);
  }
  for (let number = 1; ; number++) {
    const path = join("runs", name, String(number));
    try {
      mkdirSync(path); // fails if another run has just created this folder, so that no two runs share a folder
      return { path, made: [...above, path] };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      removeEmpty(above);
      throw explainPath(error, path, nameFolder);
    }
  }
};

/**
 * Creates the output folder of a run, or reuses the folder if the same command was started before.
 *
 * @throws ConfigError if no folder is given.
 */
export const reclaimOutput = (name: string, asked: string | undefined): ClaimedFolder => {
  if (asked === undefined)
    throw new ConfigError(["--resume-if-possible: needs a folder to look for checkpoints in; give --output <folder>"]);
  if (existsSync(join(asked, jobFile))) return { path: asked, made: [] };
  return claimOutput(name, asked);
};

/**
 * Undoes `claimOutput` and `saveJob` if a run failed before its first step. Files that were in the folder before the
 * run are not removed.
 */
export const dropUnusedOutput = ({ path, made }: ClaimedFolder): void => {
  const metrics = join(path, metricsFile);
  if (existsSync(metrics) && statSync(metrics).size > 0) return;
  if (made.length > 0) {
    rmSync(path, { recursive: true, force: true });
    removeEmpty(made.slice(0, -1));
  } else
    for (const name of [jobFile, `${jobFile}.tmp`, metricsFile, provenanceFile, changesFile])
      rmSync(join(path, name), { force: true });
};

/**
 * Saves the job in its output folder, including all defaults, so that a resumed run does not depend on defaults of
 * later versions.
 *
 * @throws ConfigError if the job is too long to be read again.
 */
export const saveJob = (output: string, job: Job): void => {
  const path = join(output, jobFile);
  const text = `${JSON.stringify(job, undefined, 2)}\n`;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxJobBytes)
    throw new ConfigError([
      `${path}: the job has ${bytes} bytes with all its paths and defaults, but at most ${maxJobBytes} are allowed; name fewer files, or one folder that holds the files`,
    ]);
  replaceDurably(nodeFiles, path, text);
};

/** Returns the path of the job file of a run. @throws CheckpointError if the folder contains no job. */
const jobPathIn = (output: string): string => {
  const path = join(output, jobFile);
  if (existsSync(path)) return path;
  const run = dirname(dirname(output));
  const hint = existsSync(join(run, jobFile)) ? resumeLine(run) : "the output folder of a run, such as runs/mnist/1";
  throw new CheckpointError(`${output} holds no run: ${path} does not exist; name ${hint}`);
};

/**
 * Loads the job of a run to resume, with the current contents of the files that the job names. @throws CheckpointError,
 * ModuleError.
 */
export const savedJob = async (output: string, overrides: readonly Override[]): Promise<Job> =>
  loadJob(jobPathIn(output), overrides);

/**
 * Reads the job of a run as recorded when the run began, for commands that do not change the run. @throws
 * CheckpointError, ConfigError.
 */
export const recordedJob = (output: string): Job => readJob(jobPathIn(output));
