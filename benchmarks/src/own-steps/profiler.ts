import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JobFile } from "../studies/job-file.ts";
import { type Ended, programOf, runProgram } from "../studies/run-program.ts";
import type { Run } from "../studies/run.ts";
import { inFolder } from "../studies/trainer.ts";

/** A job with the contents of all files that the job refers to. */
export type JobWithFiles = Pick<Run, "job" | "files">;

const command = programOf("profiler");
const hardwareFile = "hardware.json";

/**
 * Checks that a program succeeded. @throws Error with the program's error output if the program failed or took too
 * long.
 */
const requireDone = ({ code, stderr, tooLong }: Ended, what: string): void => {
  if (code !== 0)
    throw new Error(`skein-profile ${what} ${tooLong ? "took too long" : `ended with ${code}`}: ${stderr.trim()}`);
};

/**
 * Calibrates with several jobs that use the same files.
 *
 * @returns the contents of the hardware file.
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

/**
 * Measures the links of a job. @returns the contents of the hardware file, with its links replaced by the measured
 * links.
 */
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

/**
 * Plans a job with `skein-profile plan`.
 *
 * @param lossless Whether to consider only methods without compression.
 */
export const plan = ({ job, files }: JobWithFiles, hardware: string, lossless: boolean): Promise<Planned> =>
  inFolder({ job, files: { ...files, [hardwareFile]: hardware } }, async (folder) => {
    const options = ["--hardware", hardwareFile, "--json", ...(lossless ? ["--lossless"] : [])];
    const ended = await runProgram([...command, "plan", "job.json", ...options], folder, 10);
    requireDone(ended, "plan");
    const { best } = JSON.parse(ended.stdout.trim().split("\n").at(-1)!) as {
      readonly best: { readonly settings: JobFile; readonly tracedSeconds: number };
    };
    // Replace each option completely, because options of another kind of compression or buckets would be invalid.
    return { job: { ...job, ...best.settings }, settings: best.settings, predictedSeconds: best.tracedSeconds };
  });

/** Predictions of `skein-profile predict` for a job. */
export interface Predicted {
  readonly stepSeconds: number;
  /** Exposed communication in seconds, by rank. */
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
