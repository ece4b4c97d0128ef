import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolders, removeEmpty } from "../files/make-folders.ts";
import { explainPath, requireFolder } from "../files/places.ts";
import { loadJob, maxJobBytes, readJob, type Override } from "../job-file/config.ts";
import { CheckpointError, ConfigError } from "../errors.ts";
import { checkpointsFolder } from "../checkpoint/checkpoint-part.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import type { Job } from "../job/job.ts";
import { metricsFile } from "../run-files/metrics.ts";
import { changesFile, provenanceFile } from "../provenance/provenance.ts";
import { jobFile, summaryFile } from "../run-files/run-file-names.ts";
import { routingFile } from "../run-files/routing-file.ts";
import { resumeLine } from "../console/own-command.ts";

export { jobFile, summaryFile };

/** Output folder of a new run. */
export interface ClaimedFolder {
  readonly path: string;
  /**
   * Folders that were created for `path`, outermost first. If `path` is among them, the folder belongs to this run
   * alone.
   */
  readonly made: readonly string[];
}

const otherFolder = "name a folder that you may write to";
const nameFolder = "name a folder that you may write to with --output <folder>";

/** Check that a run can write all of its files into its folder. @throws ConfigError. */
export const requireOutput = (output: string): void =>
  requireFolder(output, `output folder ${output}`, {
    files: [jobFile, metricsFile, summaryFile, routingFile, provenanceFile],
    folders: [checkpointsFolder("")],
  });

/** @throws ConfigError for a folder that already holds a run. */
export const requireNoRun = (asked: string): void => {
  if (existsSync(join(asked, jobFile)))
    throw new ConfigError([
      `--output ${asked}: the folder already holds a run; continue that run with ${resumeLine(asked)}, or name another folder`,
    ]);
};

/**
 * Create a new folder: the requested folder, or `runs/<job name>/<1, 2, …>` below the working folder.
 *
 * @throws ConfigError if the folder already holds a run.
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
      mkdirSync(path); // fails if another run was faster, so that two runs never share a folder
      return { path, made: [...above, path] };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      removeEmpty(above);
      throw explainPath(error, path, nameFolder);
    }
  }
};

/**
 * Create the folder of a run that may have begun earlier with the same command.
 *
 * @throws ConfigError if no folder is given.
 */
export const reclaimOutput = (name: string, asked: string | undefined): ClaimedFolder => {
  if (asked === undefined)
    throw new ConfigError(["--resume-if-possible: needs a folder to look for checkpoints in; give --output <folder>"]);
  if (existsSync(join(asked, jobFile))) return { path: asked, made: [] };
  return claimOutput(name, asked);
};

/** Undo `claimOutput` and `saveJob` if a run failed before its first step. Earlier contents of the folder stay. */
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
 * Save the job in the folder of its results, with all defaults filled in, so that a later default cannot change a
 * resumed run.
 *
 * @throws ConfigError for a job that is too long to be read again.
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

/** Path of the job of a run. @throws CheckpointError if the folder holds no job. */
const jobPathIn = (output: string): string => {
  const path = join(output, jobFile);
  if (existsSync(path)) return path;
  const run = dirname(dirname(output));
  const hint = existsSync(join(run, jobFile)) ? resumeLine(run) : "the output folder of a run, such as runs/mnist/1";
  throw new CheckpointError(`${output} holds no run: ${path} does not exist; name ${hint}`);
};

/** Load the job of a run to resume, with the current contents of its files. @throws CheckpointError, ModuleError. */
export const savedJob = async (output: string, overrides: readonly Override[]): Promise<Job> =>
  loadJob(jobPathIn(output), overrides);

/**
 * Read the job of a run as it was when the run began, for commands that only read. @throws CheckpointError,
 * ConfigError.
 */
export const recordedJob = (output: string): Job => readJob(jobPathIn(output));
