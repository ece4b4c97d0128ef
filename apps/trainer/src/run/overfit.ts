import { join } from "node:path";
import { ConfigError, OutcomeError, resumeLine } from "@skein/cli/node";
import { stepsPerEpoch } from "@skein/data";
import type { Job, Override } from "@skein/job/node";
import { digitsText } from "@skein/report";
import { metricsFile, readMetricLines, type Summary } from "@skein/run-files/node";
import { totalStepsOf } from "@skein/step/node";
import { buildData } from "../preparation/build-data.ts";
import { loadJob } from "../job-file/load-job.ts";
import { numberOption, wholeFrom } from "../command-line/number-option.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";

/** Maximum ratio of the final loss to the first loss for which samples count as memorized. */
const memorizedShare = 0.01;

/**
 * Returns the job of `--overfit N`: the same number of steps, but on N batches of training samples (`trainSamples`),
 * evaluated on the same samples without augmentation. The job contains all of these settings, so that a resumed run
 * does not need the option.
 *
 * @throws ConfigError if the job has fewer than N batches, and errors from loading the job and its samples.
 */
export const overfitJob = async (file: string, options: RunOptions): Promise<Job> => {
  const batches = numberOption("overfit", options.overfit!, wholeFrom(1));
  const overrides = overridesOf(options);
  const job = await loadJob(file, overrides);
  const { train } = await buildData(job.data);
  const most = stepsPerEpoch(train.count, job.batch);
  if (most > 0 && batches > most)
    throw new ConfigError([
      `--overfit ${batches}: ${batches} batches of ${job.batch} are ${batches * job.batch} samples, but there are only ${train.count} training samples, which make ${most} batches; use at most ${most}`,
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
    // smoothed labels cannot be memorized
    ...(job.labelSmoothing === undefined ? [] : [set(["labelSmoothing"], undefined)]),
    ...("augment" in job.data ? [set(["data", "augment"], undefined)] : []),
  ]);
};

/**
 * Requires that a finished run has memorized its samples.
 *
 * @param output Output folder of the run.
 * @returns a line for the user.
 * @throws OutcomeError with possible causes if the run has not memorized its samples.
 */
export const requireMemorized = (output: string, { testLoss }: Pick<Summary, "testLoss">): string => {
  const first = readMetricLines(join(output, metricsFile)).find(({ type }) => type === "step");
  return verdictOn({ firstLoss: first?.["loss"] as number, loss: testLoss, output });
};

/**
 * Returns a line for the user which says that the final loss is less than `memorizedShare` of the first loss. Throws
 * OutcomeError if the final loss is not below this limit.
 */
export const verdictOn = ({
  firstLoss,
  loss,
  output,
}: {
  /** Loss of the first step, before the first update. */
  readonly firstLoss: number;
  /** Loss over the same samples at the end of the run. */
  readonly loss: number;
  readonly output: string;
}): string => {
  const bound = memorizedShare * firstLoss;
  const figures = `the loss of the samples went from ${digitsText(firstLoss, 4)} to ${digitsText(loss, 4)}`;
  if (loss < bound) return `samples memorized: ${figures}, below 1 % of the first loss`;
  if (!(firstLoss > 0))
    throw new OutcomeError(
      "not-learnt",
      `cannot decide whether the samples were memorized: ${figures}, and 1 % of a first loss that is not above 0 is no bound; give the model a loss whose minimum is 0`,
    );
  throw new OutcomeError(
    "not-learnt",
    `samples not memorized: ${figures}, but a loss below ${digitsText(bound, 3)}, 1 % of the first loss, was expected; check the learning rate (skein-train find-rate), the labels (do they belong to these inputs? does an input occur twice with different labels?), and the loss (its minimum must be 0); if the loss is still falling, train longer: ${resumeLine(output)} --steps <more>`,
  );
};
