import { triedIn, type Try } from "../convergence/tries.ts";
import { bestOf } from "../convergence/verdict.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import { resultOf as resultIn } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import { type Method, methods } from "./methods.ts";
import { rateOf, type Task, tasks } from "./tasks.ts";

export const searchName = "second-order-search";

/** Hyperparameters of a method that the search varies. */
export interface Setting {
  readonly peak: number;
  readonly second: number | string;
}

/** Training run of a task by a method with one setting, evaluated on samples held out from training. */
export interface SearchRun extends Run {
  readonly task: Task;
  readonly method: Method;
  readonly setting: Setting;
}

/**
 * Learning rates of the first search runs, relative to the middle rate. Each rate is tried with both values of the
 * method's second option.
 */
const factors: readonly number[] = [1 / 3, 1, 3];
export const validationFraction = 0.1;
/** Seed of the search, which no later run of a method uses. */
const searchSeed = 101;

/** Returns the job that trains a task by a method with a setting, for `steps` steps. */
export const jobOf = (task: Task, method: Method, { peak, second }: Setting, steps: number): JobFile =>
  layJobs(task.job, {
    steps,
    optimizer: { ...method.optimizer, [method.second.option]: second },
    learningRate: rateOf(peak),
  });

const tryOf = (task: Task, method: Method, { peak, second }: Setting, quick: boolean): SearchRun => {
  const setting = { peak: Number(peak.toPrecision(2)), second };
  const data = { ...(task.job["data"] as JobFile), validationFraction };
  return {
    name: `${task.name}/${method.name}/${method.second.option}-${second}/rate-${setting.peak}`,
    job: layJobs(jobOf(task, method, setting, task.searchSteps), quick ? task.quick : { data }, { seed: searchSeed }),
    core: true,
    warmUpSteps: 5,
    minutes: 10,
    expected: { seconds: 3 + task.searchSteps * task.stepSeconds, prefix: `${task.name}/${method.name}` },
    task,
    method,
    setting,
  };
};

/** Returns the first search runs of a method on a task. */
const gridOf = (task: Task, method: Method, quick: boolean): SearchRun[] =>
  method.second.values
    .slice(0, quick ? 1 : 2)
    .flatMap((second) =>
      (quick ? [1] : factors).map((factor) =>
        tryOf(task, method, { peak: method.peaks[task.name]! * factor, second }, quick),
      ),
    );

/**
 * Returns further learning rates to try: one on each side of the best rate. If the best rate is the lowest or highest
 * of the first search runs, returns two rates beyond that rate.
 */
const around = (peak: number, middle: number): readonly number[] => {
  const between = Math.sqrt(3);
  if (peak < middle / 2) return [peak / between, peak / 3];
  return peak > 2 * middle ? [peak * between, peak * 3] : [peak / between, peak * between];
};

/**
 * Returns the search runs of a method on a task. Runs near the best first setting are added only after the first runs
 * are done.
 */
export const triesOf = (task: Task, method: Method, quick: boolean, resultOf: ResultOf): SearchRun[] => {
  const grid = gridOf(task, method, quick);
  const tried = quick ? undefined : triedIn(grid, resultOf);
  if (tried === undefined) return grid;
  const { peak, second } = bestOf(tried).run.setting;
  const further = around(peak, method.peaks[task.name]!).map((rate) =>
    tryOf(task, method, { peak: rate, second }, quick),
  );
  return [...grid, ...further];
};

export const planSearch = ({ quick, resultsOf }: Pick<PlanOptions, "quick" | "resultsOf">): SearchRun[] => {
  const results = resultsOf(searchName);
  return tasks.flatMap((task) =>
    methods
      .filter(({ onlyTimed }) => onlyTimed !== true)
      .flatMap((method) => triesOf(task, method, quick, (run) => resultIn(results, run))),
  );
};

/** Returns the search runs of a method and the best of these runs, or undefined while a result is missing. */
export const chooseSetting = (
  task: Task,
  method: Method,
  quick: boolean,
  resultOf: ResultOf,
): { readonly best: Try<SearchRun>; readonly tries: readonly Try<SearchRun>[] } | undefined => {
  const tries = triedIn(triesOf(task, method, quick, resultOf), resultOf);
  return tries && { best: bestOf(tries), tries };
};
