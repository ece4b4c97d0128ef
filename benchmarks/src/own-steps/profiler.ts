import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JobFile } from "../studies/job-file.ts";
import { type Ended, programOf, runProgram } from "../studies/run-program.ts";
import type { Run } from "../studies/run.ts";
import { inFolder } from "../studies/trainer.ts";

/** A job with the files that it names. */
export type JobWithFiles = Pick<Run, "job" | "files">;

const command = programOf("profiler");
const hardwareFile = "hardware.json";

/** @throws Error with the error output of the program. */
const requireDone = ({ code, stderr, tooLong }: Ended, what: string): void => {
  if (code !== 0)
    throw new Error(`skein-profile ${what} ${tooLong ? "took too long" : `ended with ${code}`}: ${stderr.trim()}`);
};

/**
 * Calibrates with some jobs that name the same files.
 *
 * @returns the hardware file.
 */
export const calibrate = (jobs: readonly JobFile[], files: JobWithFiles["files"]): Promise<string> => {
  const named = Object.fromEntries(jobs.map((job, i) => [`calibrate-${i}.json`, JSON.stringify(job)]));
  return inFolder({ job: jobs[0]!, files: { ...files, ...named } }, async (folder) => {
    const ended = await runProgram(
      [...command, "calibrate", ...Object.keys(named), "--output", hardwareFile],
      folder,
      30,
    );
    requireDone(ended, "calibrate");
    return readFileSync(join(folder, hardwareFile), "utf8");
  });
};

/** Measures the links of a job. @returns the hardware file with the measured links in place of its own. */
export const withLinksOf = ({ job, files }: JobWithFiles, hardware: string): Promise<string> =>
  inFolder({ job, files: { ...files, [hardwareFile]: hardware } }, async (folder) => {
    const ended = await runProgram(
      [...command, "links", "job.json", "--hardware", hardwareFile, "--output", "there.json"],
      folder,
      10,
    );
    requireDone(ended, "links");
    return readFileSync(join(folder, "there.json"), "utf8");
  });

/** Plan that `skein-profile plan` chooses for a job. */
export interface Planned {
  /** The job with the planned settings. */
  readonly job: JobFile;
  readonly settings: JobFile;
  readonly predictedSeconds: number;
}

/** @param lossless whether only ways to exchange the same gradients are considered. */
export const plan = ({ job, files }: JobWithFiles, hardware: string, lossless: boolean): Promise<Planned> =>
  inFolder({ job, files: { ...files, [hardwareFile]: hardware } }, async (folder) => {
    const options = ["--hardware", hardwareFile, "--json", ...(lossless ? ["--lossless"] : [])];
    const ended = await runProgram([...command, "plan", "job.json", ...options], folder, 10);
    requireDone(ended, "plan");
    const { best } = JSON.parse(ended.stdout.trim().split("\n").at(-1)!) as {
      readonly best: { readonly settings: JobFile; readonly tracedSeconds: number };
    };
    // Replace options as a whole: a compression or buckets of another kind have other options.
    return { job: { ...job, ...best.settings }, settings: best.settings, predictedSeconds: best.tracedSeconds };
  });

/** Figures of `skein-profile predict` for a job. */
export interface Predicted {
  readonly stepSeconds: number;
  /** Exposed communication by rank. */
  readonly exposedSeconds: readonly number[];
}

export const predict = ({ job, files }: JobWithFiles, hardware: string): Promise<Predicted> =>
  inFolder({ job, files: { ...files, [hardwareFile]: hardware } }, async (folder) => {
    const ended = await runProgram(
      [...command, "predict", "job.json", "--hardware", hardwareFile, "--json"],
      folder,
      5,
    );
    requireDone(ended, "predict");
    return JSON.parse(ended.stdout.trim().split("\n").at(-1)!) as Predicted;
  });
