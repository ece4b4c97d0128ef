import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolders, removeEmpty } from "../files/make-folders.ts";
import { explainPlace, requireFolder } from "../files/places.ts";
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

/** The output folder of a new run. */
export interface ClaimedFolder {
  readonly path: string;
  /** The folders that were made for it, outermost first; it is ours alone where it is among them. */
  readonly made: readonly string[];
}

const otherFolder = "name a folder that you may write to";
const nameFolder = "name one that you may write to with --output <folder>";

/** Look whether a run can write all that it will into its folder. @throws ConfigError. */
export const requireOutput = (output: string): void =>
  requireFolder(output, `output folder ${output}`, {
    files: [jobFile, metricsFile, summaryFile, routingFile, provenanceFile],
    folders: [checkpointsFolder("")],
  });

/** @throws ConfigError for a folder that holds a run already. */
export const requireNoRun = (asked: string): void => {
  if (existsSync(join(asked, jobFile)))
    throw new ConfigError([
      `--output ${asked}: the folder holds a run already; continue it with ${resumeLine(asked)}, or name another folder`,
    ]);
};

/**
 * Make a new folder: the one asked for, or `runs/<job name>/<1, 2, …>` below the working folder.
 *
 * @throws ConfigError when it holds a run already.
 */
export const claimOutput = (name: string, asked: string | undefined): ClaimedFolder => {
  if (asked !== undefined) {
    requireNoRun(asked);
    try {
      return { path: asked, made: makeFolders(asked) };
    } catch (error) {
      throw explainPlace(error, `--output ${asked}`, otherFolder);
    }
  }
  let above: string[];
  try {
    above = makeFolders(join("runs", name));
  } catch (error) {
    throw explainPlace(error, join("runs", name), nameFolder);
  }
  for (let number = 1; ; number++) {
    const path = join("runs", name, String(number));
    try {
      mkdirSync(path); // fails where another run was faster, so that two never share a folder
      return { path, made: [...above, path] };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      removeEmpty(above);
      throw explainPlace(error, path, nameFolder);
    }
  }
};

/**
 * Make the folder of a run that may have begun before, under the same command.
 *
 * @throws ConfigError without a folder to look in.
 */
export const reclaimOutput = (name: string, asked: string | undefined): ClaimedFolder => {
  if (asked === undefined)
    throw new ConfigError([
      "--resume-if-possible: needs the folder to look for checkpoints in; give --output <folder>",
    ]);
  if (existsSync(join(asked, jobFile))) return { path: asked, made: [] };
  return claimOutput(name, asked);
};

/** Undo `claimOutput` and `saveJob` where a run failed before its first step; what was in the folder before stays. */
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
 * Keep the job beside its results, every default filled in, so that a later default cannot change a resumed run.
 *
 * @throws ConfigError for a job that is too long to be read again.
 */
export const saveJob = (output: string, job: Job): void => {
  const path = join(output, jobFile);
  const text = `${JSON.stringify(job, undefined, 2)}\n`;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxJobBytes)
    throw new ConfigError([
      `${path}: the job has ${bytes} bytes with all its paths and defaults, at most ${maxJobBytes} are allowed; name fewer files, or one folder with them`,
    ]);
  replaceDurably(nodeFiles, path, text);
};

/** Where the job of a run lies. @throws CheckpointError when the folder holds none. */
const jobPathIn = (output: string): string => {
  const path = join(output, jobFile);
  if (existsSync(path)) return path;
  const run = dirname(dirname(output));
  const hint = existsSync(join(run, jobFile)) ? resumeLine(run) : "the output folder of a run, such as runs/mnist/1";
  throw new CheckpointError(`${output} holds no run: ${path} is not there; name ${hint}`);
};

/** The job of a run that is to go on, with what it is made of as that is now. @throws CheckpointError, ModuleError. */
export const savedJob = async (output: string, overrides: readonly Override[]): Promise<Job> =>
  loadJob(jobPathIn(output), overrides);

/** The job of a run as it was when it began, for who only looks at it. @throws CheckpointError, ConfigError. */
export const recordedJob = (output: string): Job => readJob(jobPathIn(output));
