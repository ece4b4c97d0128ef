import { bestOf, type Quality, qualityOf } from "../convergence/verdict.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import { type Method, methods } from "./methods.ts";
import { rateOf, type Task, tasks } from "./tasks.ts";

export const searchName = "second-order-search";

/** A setting of a method: what of it is sought. */
export interface Setting {
  readonly peak: number;
  readonly second: number | string;
}

/** A task trained by a method with one setting, judged by samples held back from training. */
export interface SearchRun extends Run {
  readonly task: Task;
  readonly method: Method;
  readonly setting: Setting;
}

/** Learning rates beside the middle; with the two values of the other option six tries, for every method alike. */
const factors: readonly number[] = [1 / 3, 1, 3];
export const validationFraction = 0.1;
/** None of those that a setting is judged with afterwards. */
const searchSeed = 101;

/** The job of a task by a method with a setting, for so many steps. */
export const jobOf = (task: Task, method: Method, { peak, second }: Setting, steps: number): JobFile =>
  layJobs(task.job, {
    steps,
    optimizer: { ...method.optimizer, [method.second.option]: second },
    learningRate: rateOf(peak),
  });

/** The tries of a method on a task. */
export const triesOf = (task: Task, method: Method, quick: boolean): SearchRun[] =>
  method.second.values.slice(0, quick ? 1 : 2).flatMap((second) =>
    (quick ? [1] : factors).map((factor): SearchRun => {
      const peak = Number((method.peaks[task.name]! * factor).toPrecision(2));
      const setting = { peak, second };
      const data = { ...(task.job["data"] as JobFile), validationFraction };
      return {
        name: `${task.name}/${method.name}/${method.second.option}-${second}/rate-${peak}`,
        job: layJobs(jobOf(task, method, setting, task.searchSteps), quick ? task.quick : { data }, {
          seed: searchSeed,
        }),
        core: true,
        warmUpSteps: 5,
        minutes: 10,
        expected: { seconds: 3 + task.searchSteps * task.stepSeconds, prefix: `${task.name}/${method.name}` },
        task,
        method,
        setting,
      };
    }),
  );

export const planSearch = ({ quick }: Pick<PlanOptions, "quick">): SearchRun[] =>
  tasks.flatMap((task) =>
    methods.filter(({ onlyTimed }) => onlyTimed !== true).flatMap((method) => triesOf(task, method, quick)),
  );

export interface Try {
  readonly run: SearchRun;
  /** None where it diverged. */
  readonly quality: Quality | undefined;
}

/** The tries of a method, and the best; nothing while one is missing. */
export const chooseSetting = (
  task: Task,
  method: Method,
  quick: boolean,
  resultOf: ResultOf,
): { readonly best: Try; readonly tries: readonly Try[] } | undefined => {
  const runs = triesOf(task, method, quick);
  const outcomes = runs.map((run) => resultOf(run)?.outcome);
  if (outcomes.some((outcome) => outcome?.kind !== "done" && outcome?.kind !== "diverged")) return undefined;
  const tries = runs.map((run, i): Try => ({ run, quality: qualityOf([outcomes[i]]) }));
  return { best: bestOf(tries), tries };
};
