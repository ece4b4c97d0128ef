import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  commandAction,
  ConfigError,
  describeError,
  exitCodeOfSignal,
  exitCodes,
  nodeFiles,
  onInterrupt,
  OutcomeError,
  replaceDurably,
  requireReplaceable,
  shellQuote,
  type StopCause,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import type { Job, Override } from "@skein/job/node";
import { digitsText, textTable } from "@skein/report";
import { makeProgress, type Progress } from "@skein/run-files/node";
import type { Command } from "commander";
import { loadJob } from "../job-file/load-job.ts";
import { Interruption } from "../processes/interruption.ts";
import { localRunner } from "../controller/local-runner.ts";
import { trialColumn } from "../command-line/trial-column.ts";
import { type NumberRange, numberOption, wholeFrom } from "../command-line/number-option.ts";
import { sampleJob } from "../own-files.ts";
import { runJob } from "../run/run-job.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { LossCurve, type RateSuggestion, type SmoothedLoss, smoothLosses, suggestRate } from "./suggest-rate.ts";

interface FindRateOptions extends Omit<RunOptions, "steps"> {
  readonly from: string;
  readonly to: string;
  readonly steps?: string;
}

/** Range of learning rates of a range test. The ratio of consecutive rates is constant. */
interface RateRange {
  readonly from: number;
  readonly to: number;
  readonly steps: number;
}

const above0: NumberRange = { rule: "a number above 0", fits: (value) => value > 0 };

/** Minimum number of steps of a range test. Fewer steps do not give a usable loss curve. */
const fewestSteps = 20;

/**
 * Returns overrides for a learning rate that grows by a constant factor per step, implemented as a step decay with a
 * factor above 1.
 */
const growingRate = ({ from, to, steps }: RateRange): Override[] => {
  const origin = `skein-train find-rate --from ${from} --to ${to} --steps ${steps}`;
  const learningRate = { peak: from, decay: "step", factor: (to / from) ** (1 / (steps - 1)), everySteps: 1 };
  return [
    { path: ["learningRate"], value: learningRate, origin },
    { path: ["steps"], value: steps, origin },
  ];
};

/**
 * Returns the learning rate of the update in step `step`. The update is applied after the loss of this step is
 * computed. Steps are counted from 1.
 */
const rateOf = ({ from, to, steps }: RateRange, step: number): number =>
  from * (to / from) ** ((step - 1) / (steps - 1));

/** Runs the range test in a temporary folder until the loss diverges. */
const testRange = async (
  job: Job,
  range: RateRange,
  { interruption, progress }: { readonly interruption: Interruption; readonly progress: Progress },
): Promise<LossCurve> => {
  const curve = new LossCurve();
  const stop = new Interruption(); // a separate interruption, because the end of the test is not a stop by the user
  interruption.listen(() => stop.request());
  let isOver = false;
  const output = mkdtempSync(join(tmpdir(), "skein-find-rate-"));
  try {
    await runJob({
      job,
      runner: localRunner(job),
      interruption: stop,
      output: join(output, "run"),
      start: "anew",
      maxRestarts: 0,
      profile: () => undefined, // no checkpoints and evaluations
      detailEvery: range.steps + 1,
      progress: {
        ...progress,
        // Notes about the temporary folder are not displayed.
        note: (line) => {
          if (!line.includes(output)) progress.note(line);
        },
        update: (state) => {
          progress.update(state);
          // Losses of steps that finish after the end of the test are ignored.
          isOver ||= curve.add({ rate: rateOf(range, state.step), loss: state.loss });
          if (isOver) stop.request();
        },
      },
    });
  } catch (error) {
    const { code } = describeError(error);
    const hasStopped = code === "interrupted" && (isOver || interruption.requested);
    if (code !== "non-finite" && !hasStopped) throw error; // a loss that is not finite ends the test as expected
  } finally {
    interruption.listen(undefined);
    rmSync(output, { recursive: true, force: true });
  }
  return curve;
};

/**
 * Maximum number of rows in the table of a loss curve. Points between rows are omitted, because the curve is smooth.
 */
const maxRows = 24;
const barWidth = 40;

/** Formats the curve as a table with a bar for each loss. */
const curveLines = (points: readonly SmoothedLoss[], suggestion: RateSuggestion | undefined): string[] => {
  const every = Math.max(1, Math.ceil(points.length / maxRows));
  const rows = points.filter((_, i) => i % every === 0 || i === points.length - 1);
  const most = Math.max(...rows.map(({ smoothed }) => smoothed));
  const low = Math.min(0, ...rows.map(({ smoothed }) => smoothed));
  const at = (rate: number | undefined): SmoothedLoss | undefined =>
    rate === undefined
      ? undefined
      : rows.reduce((best, one) =>
          Math.abs(Math.log(one.rate / rate)) < Math.abs(Math.log(best.rate / rate)) ? one : best,
        );
  const marks = new Map([
    [at(suggestion?.least), "  minimum"],
    [at(suggestion?.steepest), "  falls fastest"],
    [at(suggestion?.rate), "  suggested"],
  ]);
  const bar = (value: number): string => "█".repeat(Math.round((barWidth * (value - low)) / (most - low || 1)));
  return textTable(
    [trialColumn("rate", true), trialColumn("loss", true), trialColumn("smoothed", true), trialColumn("", false)],
    rows.map((point) => [
      point.rate.toExponential(1),
      digitsText(point.loss, 4),
      digitsText(point.smoothed, 4),
      `${bar(point.smoothed)}${marks.get(point) ?? ""}`,
    ]),
    process.stdout.columns ?? 120,
  );
};

const suggestionLines = ({ rate, steepest, least }: RateSuggestion, last: number): string[] => [
  "",
  ...(least === last ? ["the loss was still decreasing at the last rate: repeat with a larger --to"] : []),
  `suggested  --set learningRate.peak=${Number(rate.toPrecision(2))}`,
  `derived    the smoothed loss falls fastest over the logarithm of the rate at ${digitsText(steepest, 2)}, and is lowest at ${digitsText(least, 2)};`,
  "           the suggestion is the smaller of the first rate and a tenth of the second",
];

const rangeOf = ({ from, to, steps = "100" }: FindRateOptions): RateRange => {
  const range = {
    from: numberOption("from", from, above0),
    to: numberOption("to", to, above0),
    steps: numberOption("steps", steps, wholeFrom(fewestSteps)),
  };
  if (range.from >= range.to)
    throw new ConfigError([`--from ${from} --to ${to}: the rate increases, so --from must be smaller; swap them`]);
  return range;
};

/**
 * Implements `skein-train find-rate`.
 * @returns the exit code. @throws OutcomeError if the loss did not decrease.
 */
export const findRateCommand = async (file: string, options: FindRateOptions): Promise<number> => {
  const range = rangeOf(options);
  const { steps: _, ...jobOptions } = options;
  const job = await loadJob(file, [...overridesOf(jobOptions), ...growingRate(range)]);
  if (options.output !== undefined) requireReplaceable(options.output, "--output");
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    interruption.request();
  });
  let curve: LossCurve;
  try {
    curve = await testRange(job, range, { interruption, progress });
  } finally {
    progress.close();
    release();
  }
  if (cause !== undefined) {
    writeStderr(`stopped after ${curve.points.length} of ${range.steps} steps; nothing was written\n`);
    return exitCodeOfSignal(cause);
  }
  const points = smoothLosses(curve.points);
  const suggestion = suggestRate(curve.points);
  const found = JSON.stringify({ job: job.name, range, suggestion, points });
  if (options.output !== undefined) replaceDurably(nodeFiles, options.output, `${found}\n`);
  if (options.json === true) writeStdout(`${found}\n`);
  else
    for (const line of [
      ...(points.length === 0 ? [] : curveLines(points, suggestion)),
      ...(suggestion === undefined ? [] : suggestionLines(suggestion, points.at(-1)!.rate)),
    ])
      writeStdout(`${line}\n`);
  if (suggestion !== undefined) return exitCodes.ok;
  throw new OutcomeError(
    "no-rate",
    `no rate can be suggested: over ${points.length} steps from ${options.from} on, the loss did not decrease by more than its noise; start at a smaller rate (--from), run more steps (--steps), or check whether the model learns at all: skein-train run ${shellQuote(file)} --overfit 1`,
  );
};

/**
 * Adds `skein-train find-rate` to the command line.
 * @param finish receives the exit code. @param withOverrides adds the options that override job settings.
 */
export const addFindRateCommand = (
  program: Command,
  finish: (code: number) => void,
  withOverrides: (command: Command) => Command,
): void => {
  withOverrides(
    program
      .command("find-rate")
      .description("suggest a learning rate: train briefly with an increasing rate, and watch the loss")
      .argument("<job>", "job file")
      .option("--from <rate>", "first rate", "1e-6")
      .option("--to <rate>", "last rate, unless the loss diverges before", "1")
      .option("--output <file>", "write rates and losses into this file, as JSON"),
  )
    .addHelpText("after", `\nDefault of --steps: 100.\nExample:\n  skein-train find-rate ${sampleJob()}`)
    .action(commandAction(finish, findRateCommand));
};
