import { join } from "node:path";
import { stepsPerEpoch } from "@skein/data";
import { digitsText } from "@skein/report";
import { buildData } from "../preparation/build-data.ts";
import { loadJob, type Override } from "../job-file/config.ts";
import { ConfigError, OutcomeError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { metricsFile } from "../run-files/metrics.ts";
import { numberOption, wholeFrom } from "../command-line/number-option.ts";
import { resumeLine } from "../console/own-command.ts";
import { readMetricLines } from "../run-files/metric-lines.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import type { Summary } from "../run-files/summary.ts";
import { totalStepsOf } from "../step/train-state.ts";

/** Of the first loss: what is below it was not guessed. */
const learntShare = 0.01;

/**
 * The job of `--overfit N`: as many steps as the job itself has, on N batches of its samples alone (`trainSamples`),
 * judged by these and without augmentation. All of that is said by the job, so that a run that goes on needs no option.
 *
 * @throws ConfigError for more batches than there are, and what loading the job and its samples throws.
 */
export const overfitJob = async (file: string, options: RunOptions): Promise<Job> => {
  const batches = numberOption("overfit", options.overfit!, wholeFrom(1));
  const overrides = overridesOf(options);
  const job = await loadJob(file, overrides);
  const { train } = await buildData(job.data);
  const most = stepsPerEpoch(train.count, job.batch);
  if (most > 0 && batches > most)
    throw new ConfigError([
      `--overfit ${batches}: ${batches} batches of ${job.batch} are ${batches * job.batch} samples, but there are ${train.count} training samples, which make ${most}; use at most ${most}`,
    ]);
  const origin = `--overfit ${batches}`;
  const set = (path: readonly string[], value: unknown): Override => ({ path, value, origin });
  return loadJob(file, [
    ...overrides,
    set(["steps"], totalStepsOf(job, most)),
    set(["epochs"], undefined),
    set(["data", "trainSamples"], batches * job.batch),
    set(["data", "testSamples"], undefined),
    set(["data", "judgeBy"], "training"),
    // smoothed labels cannot be learnt by heart
    ...(job.labelSmoothing === undefined ? [] : [set(["labelSmoothing"], undefined)]),
    ...("augment" in job.data ? [set(["data", "augment"], undefined)] : []),
  ]);
};

/**
 * Whether a run that is done has learnt its samples by heart.
 *
 * @param output its folder.
 * @returns a line for people.
 * @throws OutcomeError where it has not, with what to look at.
 */
export const requireLearnt = (output: string, { testLoss }: Pick<Summary, "testLoss">): string => {
  const first = readMetricLines(join(output, metricsFile)).find(({ type }) => type === "step");
  return verdictOn({ firstLoss: first?.["loss"] as number, loss: testLoss, output });
};

/** The same by its losses. */
export const verdictOn = ({
  firstLoss,
  loss,
  output,
}: {
  /** Of the first step, before its update. */
  readonly firstLoss: number;
  /** Of the same samples at the end. */
  readonly loss: number;
  readonly output: string;
}): string => {
  const bound = learntShare * firstLoss;
  const figures = `the loss of the samples went from ${digitsText(firstLoss, 4)} to ${digitsText(loss, 4)}`;
  if (loss < bound) return `learnt by heart: ${figures}, below a hundredth of the first`;
  if (!(firstLoss > 0))
    throw new OutcomeError(
      "not-learnt",
      `whether the samples were learnt by heart cannot be told: ${figures}, and a hundredth of a first loss that is not above 0 says nothing; give the model a loss whose least value is 0`,
    );
  throw new OutcomeError(
    "not-learnt",
    `not learnt by heart: ${figures}, but below ${digitsText(bound, 3)}, a hundredth of the first, was to come; look at the learning rate (skein-train find-rate), at the labels (do they belong to these inputs, is one input there twice with two labels?), and at the loss (its least value must be 0); where it still falls, train longer: ${resumeLine(output)} --steps <more>`,
  );
};
