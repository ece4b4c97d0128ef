import { join } from "node:path";
import {
  asTyped,
  commandAction,
  ConfigError,
  exitCodeOfSignal,
  exitCodes,
  explainPath,
  makeFolders,
  nodeFiles,
  onInterrupt,
  OutcomeError,
  redactSecrets,
  replaceDurably,
  requireFolder,
  sha256,
  type StopCause,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import type { Job, Override } from "@skein/job/node";
import { sweepPage } from "@skein/report";
import { holdOutput, makeProgress } from "@skein/run-files/node";
import { type Chance, chanceOf } from "@skein/step/node";
import { type Command, Option } from "commander";
import { loadJob, readJob } from "../job-file/load-job.ts";
import { Interruption } from "../processes/interruption.ts";
import { numberOption, wholeFrom } from "../command-line/number-option.ts";
import { requireNoRun } from "../output-folder/output-folder.ts";
import { sampleJob } from "../own-files.ts";
import { prepare } from "../preparation/prepare.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { gridPoints } from "./choose-points.ts";
import { knownPoints, runSweep, type SweepRun } from "./run-sweep.ts";
import { type Dimension, keyOf, overridesAt, type Point, searchSpace } from "./search-space.ts";
import { saveSweep, savedSweep, type SweepFile, sweepFile, type SweepSettings, type Trial } from "./sweep-file.ts";
import { chanceRemark, ranked, sweepTable, trainCommand, trialLine, valueText } from "./sweep-lines.ts";

interface SweepOptions extends RunOptions {
  readonly output: string;
  readonly grid: readonly string[];
  readonly random: readonly string[];
  readonly search?: string;
  readonly trials?: string;
  readonly parallel: string;
  readonly seed: string;
}

/** Default share of the training samples that is used for validation. */
const validationFraction = 0.1;

const pageFile = "sweep.html";

const searchOf = (asked: string | undefined, dimensions: readonly Dimension[]): SweepSettings["search"] => {
  const hasRange = dimensions.some(({ kind }) => kind === "range");
  const search = asked ?? (hasRange ? "random" : "grid");
  if (search === "grid" && hasRange)
    throw new ConfigError(["--search grid: a range has no list of values; give values with --grid, or use random"]);
  if (search === "bayes" && dimensions.some(({ kind }) => kind === "choice"))
    throw new ConfigError([
      "--search bayes: searches only ranges of numbers; give them with --random, and remove --grid",
    ]);
  if (search !== "grid" && search !== "random" && search !== "bayes")
    throw new ConfigError([`--search is ${JSON.stringify(search)}, but must be grid, random or bayes`]);
  return search;
};

const trialsOf = (
  asked: string | undefined,
  search: SweepSettings["search"],
  dimensions: readonly Dimension[],
): number => {
  const count = asked === undefined ? undefined : numberOption("trials", asked, wholeFrom(1));
  if (search !== "grid") {
    if (count === undefined) throw new ConfigError([`--trials is missing; give the number of trials, such as 20`]);
    return count;
  }
  const all = dimensions.reduce((product, one) => product * (one.kind === "choice" ? one.values.length : 1), 1);
  if (count !== undefined && count !== all)
    throw new ConfigError([
      `--trials ${count}: a grid tries each of its ${all} combinations once; leave --trials out, or use --search random`,
    ]);
  return all;
};

/**
 * Returns the points that are checked before the first trial to detect invalid jobs: all combinations of listed values
 * and of range bounds. For dimensions after the sixth, only the first value or the lower bound is used.
 */
const corners = (dimensions: readonly Dimension[]): Point[] =>
  gridPoints(dimensions.slice(0, 6).map((one) => (one.kind === "range" ? [one.low, one.high] : one.values))).map(
    (point) => [...point, ...dimensions.slice(6).map((one) => (one.kind === "range" ? one.low : one.values[0]))],
  );

/** Returns the base job of all trials, in which validation samples are split off from the training samples. */
const evaluatedJob = async (
  file: string,
  overrides: readonly Override[],
): Promise<{ readonly job: Job; readonly overrides: readonly Override[]; readonly isOwnFraction: boolean }> => {
  const job = await loadJob(file, overrides);
  if (job.data.judgeBy !== undefined)
    throw new ConfigError([
      `data.judgeBy: ${job.data.judgeBy}: trials are evaluated on validation samples; remove data.judgeBy`,
    ]);
  if (job.data.validationFraction !== undefined) return { job, overrides, isOwnFraction: true };
  const more = { path: ["data", "validationFraction"], value: validationFraction, origin: "skein-train sweep" };
  const all = [...overrides, more];
  return { job: await loadJob(file, all), overrides: all, isOwnFraction: false };
};

/** Returns the command-line options that apply to each trial, as given by the user. */
const sharedOptions = ({ set, ranks, steps, transport, certificates, insecure }: SweepOptions): string[] => [
  ...set.flatMap((one) => ["--set", one]),
  ...Object.entries({ ranks, steps, transport, certificates }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  ),
  ...(insecure === true ? ["--insecure"] : []),
];

const writePage = (output: string, sweep: SweepFile, dimensions: readonly Dimension[], command: string): void => {
  const { search, seed } = sweep.settings;
  const page = sweepPage({
    name: sweep.name,
    about: `${search} search, ${sweep.trials.length} trials, seed ${seed}; evaluated on validation samples, which are held back from training; test samples are not used`,
    keys: dimensions.map((dimension) => ({
      key: keyOf(dimension),
      isLog: dimension.kind === "range" && dimension.scale === "log",
    })),
    trials: ranked(sweep.trials).map(({ trial, values, loss, seconds, state, reason }) => ({
      trial,
      values: Object.values(values).map((value) => (typeof value === "number" ? value : valueText(value))),
      loss,
      seconds,
      state: reason === undefined ? state : `${state}: ${reason.split("\n")[0]!}`,
    })),
    command: redactSecrets(command),
  });
  replaceDurably(nodeFiles, join(output, pageFile), page);
};

const openFolder = (output: string): void => {
  requireNoRun(output);
  try {
    makeFolders(output);
  } catch (error) {
    throw explainPath(error, `--output ${output}`, "name a folder that you may write to");
  }
  requireFolder(output, `--output ${output}`, { files: [sweepFile, pageFile], folders: [] });
};

/** Implements `skein-train sweep`. @returns the exit code. */
export const sweepCommand = async (file: string, options: SweepOptions): Promise<number> => {
  const { output } = options;
  const dimensions = searchSpace(options.grid, options.random);
  const search = searchOf(options.search, dimensions);
  const numTrials = trialsOf(options.trials, search, dimensions);
  const parallel = numberOption("parallel", options.parallel, wholeFrom(1));
  const seed = numberOption("seed", options.seed, wholeFrom(0));
  const { job, overrides, isOwnFraction } = await evaluatedJob(file, overridesOf(options));
  const points = knownPoints(search, dimensions, { numTrials, seed });
  for (const point of points ?? corners(dimensions)) readJob(file, [...overrides, ...overridesAt(dimensions, point)]);
  const chance = chanceOf((await prepare(job)).data);
  const settings: SweepSettings = { job: sha256(JSON.stringify(job)), search, space: [...dimensions], seed, parallel };
  openFolder(output);
  const releaseFolder = await holdOutput(output, {
    what: "a sweep",
    note: (line) => writeStderr(`${line}\n`),
  });
  try {
    return await searchIn(file, options, {
      name: job.name,
      overrides,
      dimensions,
      settings,
      numTrials,
      isOwnFraction,
      chance,
    });
  } finally {
    releaseFolder();
  }
};

/** A sweep with a checked job and a checked search space. */
interface CheckedSweep extends Pick<SweepRun, "overrides" | "dimensions" | "numTrials"> {
  /** Name of the base job. */
  readonly name: string;
  readonly settings: SweepSettings;
  /** Whether the job sets a validation fraction. */
  readonly isOwnFraction: boolean;
  /**
   * Results of guessing on the validation samples: accuracy of always predicting the most frequent class, and loss of a
   * uniform guess.
   */
  readonly chance: Chance;
}

/** Runs the trials that are missing in the output folder. @returns the exit code. */
const searchIn = async (
  file: string,
  options: SweepOptions,
  { name, overrides, dimensions, settings, numTrials, isOwnFraction, chance }: CheckedSweep,
): Promise<number> => {
  const { output } = options;
  const { search, parallel } = settings;
  const before = savedSweep(output, settings);
  const sweep = before ?? { format: "skein-sweep", version: 1, name, settings, trials: [] };
  if (before === undefined) saveSweep(output, sweep);
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  if (!isOwnFraction)
    progress.note(
      `data.validationFraction: ${validationFraction} of the training samples are held back for evaluation (see data.validationFrom); the test samples are not used`,
    );
  const isDone = ({ state }: Trial): boolean => state !== "under way";
  const numDone = sweep.trials.filter(isDone).length;
  progress.note(
    `${name}: ${numTrials} trials by ${search} search, ${Math.min(parallel, numTrials)} at once, in ${output}${numDone > 0 ? `; ${numDone} are done already` : ""}`,
  );
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt(
    (signal) => {
      cause = signal;
      progress.note("stopping: trials end after their step and save");
      interruption.request();
    },
    (line) => progress.note(line),
  );
  let done: SweepFile;
  try {
    done = await runSweep({
      file,
      overrides,
      dimensions,
      numTrials,
      output,
      sweep,
      interruption,
      onTrial: (trial) => progress.note(trialLine(trial)),
    });
  } finally {
    release();
    progress.close();
  }
  if (cause !== undefined && done.trials.filter(isDone).length < numTrials) {
    writeStderr(
      `stopped with ${done.trials.filter(isDone).length} of ${numTrials} trials done; repeat the same command to continue\n`,
    );
    return exitCodeOfSignal(cause);
  }
  return reportSweep(file, options, { done, dimensions, holdsBack: isOwnFraction, chance });
};

/** Reports the results as a page, and as a table or JSON. @throws OutcomeError if all trials failed. */
const reportSweep = (
  file: string,
  options: SweepOptions,
  {
    done,
    dimensions,
    holdsBack,
    chance,
  }: {
    readonly done: SweepFile;
    readonly dimensions: readonly Dimension[];
    /** Whether the job sets a validation fraction. */
    readonly holdsBack: boolean;
    readonly chance: Chance;
  },
): number => {
  const [best] = ranked(done.trials);
  const command = asTyped(trainCommand(file, sharedOptions(options), best!));
  writePage(options.output, done, dimensions, command);
  if (options.json === true) writeStdout(`${JSON.stringify(done)}\n`);
  else for (const line of sweepTable(done, process.stdout.columns ?? 200)) writeStdout(`${line}\n`);
  if (best!.loss === undefined)
    throw new OutcomeError(
      "sweep-failed",
      `all ${done.trials.length} trials failed; the first: ${done.trials[0]!.reason!.split("\n")[0]!}; search other values, such as smaller learning rates`,
    );
  const remark = chanceRemark(done.trials, chance);
  if (remark !== undefined) writeStderr(`${remark}\n`);
  if (options.json !== true)
    writeStdout(
      `\npage   ${join(options.output, pageFile)}\nbest   trial ${best!.trial}; to train it${holdsBack ? " (the job itself holds samples back by data.validationFraction)" : " on all samples"}:\n       ${command}\n`,
    );
  return exitCodes.ok;
};

/**
 * Adds the command `skein-train sweep`.
 *
 * @param finish Receives the exit code.
 * @param withOverrides Adds the options that override job settings.
 */
export const addSweepCommand = (
  program: Command,
  finish: (code: number) => void,
  withOverrides: (command: Command) => Command,
): void => {
  const collect = (value: string, list: readonly string[]): string[] => [...list, value];
  withOverrides(
    program
      .command("sweep")
      .description("search for settings of a job: separate runs, evaluated on samples held back from training")
      .argument("<job>", "job file")
      .requiredOption(
        "--output <folder>",
        "folder of trials and results; the same command continues a sweep in this folder",
      )
      .addOption(
        new Option("--grid <key=values>", "values to try, such as batch=32,64; may be repeated")
          .argParser(collect)
          .default([], "none"),
      )
      .addOption(
        new Option(
          "--random <key=range>",
          "range of a number, such as learningRate.peak=log:1e-4..1e-1; prefixes: log:, int:, log-int:; may be repeated",
        )
          .argParser(collect)
          .default([], "none"),
      )
      .option("--search <how>", "grid, random or bayes; default: random if a range is given, otherwise grid")
      .option("--trials <count>", "number of trials; a grid tries all combinations")
      .option("--parallel <count>", "number of concurrent trials", "1")
      .option("--seed <number>", "seed of random and bayes", "0"),
  )
    .addHelpText(
      "after",
      `\nExample:\n  skein-train sweep ${sampleJob()} --random learningRate.peak=log:1e-4..1e-1 --search bayes --trials 12 --parallel 2 --output sweeps/mnist`,
    )
    .action(commandAction(finish, sweepCommand));
};
