import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { median } from "@skein/measuring";
import { machine } from "../report/page.ts";
import { plotWriter } from "../report/write-plots.ts";
import { baseline } from "../slow-links/methods.ts";
import { planSlowLinks, type SlowLinksRun } from "../slow-links/plan.ts";
import { commitOfCode } from "../studies/commit.ts";
import type { JobFile } from "../studies/job-file.ts";
import { makeRun } from "../studies/make-run.ts";
import {
  addResult,
  appendResult,
  readResults,
  type Result,
  resultOf,
  type Results,
  takesOf,
} from "../studies/results-file.ts";
import { isSelected } from "../studies/run.ts";
import { Interrupted } from "../studies/run-program.ts";
import { resultsPath } from "../studies/study-options.ts";
import { calibrationJobs, calibrationNetwork } from "./calibration.ts";
import { cellNameOf, type OwnStep, type PlannedStep } from "./own-step.ts";
import { ownStepsPage } from "./page.ts";
import { calibrate, plan, predict, withLinksOf } from "./profiler.ts";

const defaultTakes = 3;

const usage = `Predict steps over slow links by a calibration over another network, and measure them.

  pnpm bench own-steps [--only PATTERN,PATTERN] [--takes N] [--page FILE]

  --only   which runs of \`pnpm bench slow-links\`; words with slashes between them must all begin a segment of a run's name. Default: those that claims rest on
  --takes  how often each network, number of ranks and model is calibrated and then measured, in turns, since machines drift; default: ${defaultTakes}
  --page   where the page goes, with its plot beside it; default: docs/benchmarks/<date>-own-steps.md

Takes are kept in ${resultsPath("own-steps", false)}: an interrupted command goes on.`;

const options = {
  only: { type: "string" },
  takes: { type: "string", default: String(defaultTakes) },
  page: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** Line of the results file: a measured run, with the prediction made minutes before the measurement. */
interface Take extends Result {
  readonly predictedSeconds: number;
  /** Job options that `plan` changed. Absent: the run was not planned. */
  readonly settings?: JobFile;
}

/**
 * Kinds of planned runs: the last segment of the run's name, and whether the planned method must exchange the same
 * gradients as the baseline.
 */
const plans = [
  ["planned", false],
  ["planned-lossless", true],
] as const;

/** Returns the name of a planned run: the run's name with its last segment, the method, replaced by `last`. */
const plannedName = ({ name }: SlowLinksRun, last: string): string => [...name.split("/").slice(0, -1), last].join("/");

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const inMilliseconds = (seconds: number): string => `${(1000 * seconds).toFixed(1)} ms`;

/** Whether the job tunes buckets during the run, so that the final buckets depend on measured times. */
const isTriedOut = ({ job }: SlowLinksRun): boolean => (job["buckets"] as JobFile)["kind"] === "tuned";

/** Returns all repetitions of a planned run. Planned settings may differ between repetitions. */
const takesNamed = (results: Results, name: string): readonly Take[] =>
  ([...results.values()].flat() as Take[]).filter((result) => result.name === name);

/** Predicts and measures the runs of a cell that have at most `take` repetitions. */
const takeCell = async (
  cell: readonly SlowLinksRun[],
  calibrated: string,
  { take, results, keep }: { readonly take: number; readonly results: Results; readonly keep: (result: Take) => void },
): Promise<void> => {
  const [first] = cell as readonly [SlowLinksRun];
  say(`${cellNameOf(first)}, take ${take + 1}`);
  const hardware = await withLinksOf(first, calibrated);
  const commit = commitOfCode();
  const measure = async (
    run: SlowLinksRun,
    name: string,
    more: Pick<Take, "predictedSeconds" | "settings">,
  ): Promise<void> => {
    const result = await makeRun(run, take, commit);
    keep({ ...result, ...more });
    const { outcome } = result;
    const came = outcome.kind === "done" ? `${inMilliseconds(outcome.stepSeconds.median)} measured` : outcome.kind;
    say(`  ${name}: ${inMilliseconds(more.predictedSeconds)} predicted, ${came}`);
  };
  for (const run of cell.filter((one) => takesOf(results, one).length <= take)) {
    const { stepSeconds: predictedSeconds } = await predict(run, hardware);
    await measure(run, run.method.name, { predictedSeconds });
  }
  const dense = cell.find(({ method }) => method.name === baseline);
  if (dense === undefined) return; // only some methods were requested
  for (const [last, lossless] of plans) {
    const name = plannedName(dense, last);
    if (takesNamed(results, name).length > take) continue;
    const { job, settings, predictedSeconds } = await plan(dense, hardware, lossless);
    await measure({ ...dense, name, job }, last, { predictedSeconds, settings });
  }
};

/** Runs one repetition of cells with the same jobs over different networks. All cells share one calibration. */
const takeCells = async (
  cells: readonly (readonly SlowLinksRun[])[],
  options: { readonly take: number; readonly results: Results; readonly keep: (result: Take) => void },
): Promise<void> => {
  const { take, results } = options;
  const due = cells.filter((cell) => cell.some((run) => takesOf(results, run).length <= take));
  const [first] = due;
  if (first === undefined) return;
  const { jobs, files } = calibrationJobs(first);
  say(`${first[0]!.ranks} ranks: ${first[0]!.model.title}, take ${take + 1}: calibrating by ${jobs.length} jobs …`);
  const calibrated = await calibrate(jobs, files);
  for (const cell of due) await takeCell(cell, calibrated, options);
};

/**
 * Combines all repetitions of a run: medians of the predictions and of the measurements. Empty while the run is not
 * done.
 */
const stepOf = (run: SlowLinksRun, results: Results): readonly OwnStep[] => {
  const outcome = resultOf(results, run)?.outcome;
  if (outcome?.kind !== "done") return [];
  const takes = takesOf(results, run) as readonly Take[];
  const predictedSeconds = median(takes.map((one) => one.predictedSeconds));
  const medians = takes.flatMap((one) => (one.outcome.kind === "done" ? [one.outcome.stepSeconds.median] : []));
  const relativeHalfRange = (Math.max(...medians) - Math.min(...medians)) / 2 / outcome.stepSeconds.median;
  return [{ run, measured: outcome.stepSeconds, predictedSeconds, takes: takes.length, relativeHalfRange }];
};

/** Returns the planned settings of a cell for each repetition, with predicted and measured times. */
const plannedOf = (dense: SlowLinksRun, results: Results): readonly PlannedStep[] =>
  plans.flatMap(([last, lossless]) =>
    takesNamed(results, plannedName(dense, last)).flatMap(
      ({ outcome, take = 0, predictedSeconds, settings = {} }): readonly PlannedStep[] =>
        outcome.kind === "done"
          ? [{ run: dense, take, lossless, settings, predictedSeconds, measured: outcome.stepSeconds }]
          : [],
    ),
  );

/** Runs the command line of the page. @returns the exit code. */
export const ownSteps = async (args: readonly string[]): Promise<number> => {
  const { only, takes: asked, page, help } = parseArgs({ args: [...args], options }).values;
  if (help) {
    console.log(usage);
    return 0;
  }
  const takes = Number(asked);
  if (!(Number.isSafeInteger(takes) && takes > 0)) {
    console.error(`--takes ${asked}: how often each cell is measured is a whole number from 1; use ${defaultTakes}`);
    return 2;
  }
  const date = new Date().toISOString().slice(0, 10);
  const target = page ?? `docs/benchmarks/${date}-own-steps.md`;
  const path = resultsPath("own-steps", false);
  const results = readResults(path);
  const planned = planSlowLinks({
    quick: false,
    seeds: [1],
    resultsOf: (study) => readResults(resultsPath(study, false)),
  }).filter((run) => run.network !== calibrationNetwork && !isTriedOut(run) && run.core);
  const runs = planned.filter((run) => isSelected(run, only?.split(",") ?? []));
  const lacking = runs.find(({ lacks }) => lacks !== undefined);
  if (runs.length === 0 || lacking !== undefined) {
    console.error(
      lacking === undefined
        ? `--only ${only}: no run is meant by it; pnpm bench slow-links --list prints the names`
        : `${lacking.name}: ${lacking.lacks}`,
    );
    return 2;
  }
  const keep = (result: Take): void => {
    appendResult(path, result);
    addResult(results, result);
  };
  const cells = [...Map.groupBy(runs, cellNameOf).values()];
  const alike = [...Map.groupBy(cells, ([first]) => `${first!.ranks} ${first!.model.name}`).values()];
  try {
    for (let take = 0; take < takes; take++) for (const some of alike) await takeCells(some, { take, results, keep });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    say(`interrupted; the same command goes on, with what is in ${path}`);
    return 130;
  }
  mkdirSync(dirname(target), { recursive: true });
  const text = ownStepsPage(
    planned.flatMap((run) => stepOf(run, results)),
    planned.filter(({ method }) => method.name === baseline).flatMap((run) => plannedOf(run, results)),
    {
      date,
      command: [
        "pnpm bench own-steps",
        ...(only === undefined ? [] : [`--only ${only}`]),
        ...(takes === defaultTakes ? [] : [`--takes ${takes}`]),
      ].join(" "),
      machine: machine(),
      draw: plotWriter(target),
    },
  );
  writeFileSync(target, text);
  console.log(`wrote ${target}`);
  return 0;
};
