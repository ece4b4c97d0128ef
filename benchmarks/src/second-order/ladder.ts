import { type Quality, qualityOf } from "../convergence/verdict.ts";
import { layJobs } from "../studies/job-file.ts";
import { resultOf } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import { type Method, methods } from "./methods.ts";
import { chooseSetting, jobOf, searchName, type Setting } from "./search-plan.ts";
import { type Task, tasks } from "./tasks.ts";

export const ladderName = "second-order";
/** Minimum number of seeds to claim that a method reaches the target. */
export const minSeeds = 3;

/** Training run of a task by a method, for one of the task's run lengths. */
export interface LadderRun extends Run {
  readonly task: Task;
  readonly method: Method;
  readonly setting: Setting;
  readonly steps: number;
  readonly seed: number;
}

/** A rung of the ladder: training runs of a method on a task with one run length, one run per seed. */
export interface Rung {
  readonly steps: number;
  readonly runs: readonly LadderRun[];
  /** Quality over the seeds that have finished. Undefined: no quality is known. */
  readonly quality: Quality | undefined;
  /**
   * Whether the runs reached the target quality. `missed` includes run lengths whose first seed is so far from the
   * target that the other seeds are skipped.
   */
  readonly standing: "reached" | "missed" | "not run";
}

/**
 * Returns how far the mean quality is from the target, in the target's unit. Negative if the quality is better than the
 * target.
 */
const shortBy = ({ target }: Task, { mean }: Pick<Quality, "mean">): number =>
  target.unit === "%" ? target.value - mean : mean - target.value;

const lackOf = (task: Task, method: Method, quick: boolean): string =>
  `its setting has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}, for this row alone with --only ${task.name}/${method.name}`;

/**
 * Compares the quality of all seeds with the target. Uses only the first seed if this seed misses the target by a wide
 * margin.
 */
const judge = (task: Task, runs: readonly LadderRun[], own: ResultOf): Rung => {
  const outcomes = runs.map((run) => own(run)?.outcome);
  const { steps } = runs[0]!;
  if (outcomes[0] === undefined) return { steps, runs, quality: undefined, standing: "not run" };
  const first = qualityOf([outcomes[0]]);
  if (first === undefined || shortBy(task, first) > task.near)
    return { steps, runs: runs.slice(0, 1), quality: first, standing: "missed" };
  const quality = qualityOf(outcomes);
  if (outcomes.includes(undefined) || runs.length < minSeeds)
    return { steps, runs, quality: quality ?? first, standing: "not run" };
  return {
    steps,
    runs,
    quality,
    standing: quality !== undefined && shortBy(task, quality) <= 0 ? "reached" : "missed",
  };
};

/**
 * Returns the results of a method for increasing run lengths, up to the first run length that reaches the target or has
 * not been run.
 */
const rungsOf = (task: Task, method: Method, { quick, seeds, resultsOf }: PlanOptions, own: ResultOf): Rung[] => {
  const searched = resultsOf(searchName);
  const choice = chooseSetting(task, method, quick, (run) => resultOf(searched, run));
  const setting = choice?.best.run.setting ?? { peak: method.peaks[task.name]!, second: method.second.values[0] };
  const runOf = (steps: number, seed: number): LadderRun => ({
    name: `${task.name}/${method.name}/steps-${steps}/seed-${seed}`,
    job: layJobs(jobOf(task, method, setting, steps), quick ? task.quick : {}, { seed }),
    core: true,
    warmUpSteps: 5,
    minutes: 20,
    expected: { seconds: 3 + steps * task.stepSeconds, prefix: `${task.name}/${method.name}/steps-${steps}` },
    ...(choice === undefined && { lacks: lackOf(task, method, quick) }),
    task,
    method,
    setting,
    steps,
    seed,
  });
  const rungs: Rung[] = [];
  for (const steps of quick ? task.horizons.slice(0, 1) : task.horizons) {
    const rung = judge(
      task,
      seeds.map((seed) => runOf(steps, seed)),
      own,
    );
    rungs.push(rung);
    if (rung.standing !== "missed") break;
  }
  return rungs;
};

/** Run lengths that a method tried on a task, and the shortest run length that reached the target. */
export interface Climb {
  readonly task: Task;
  readonly method: Method;
  readonly rungs: readonly Rung[];
  /**
   * Shortest run length for which the mean over the seeds reaches the target. Undefined: no run length has reached the
   * target yet.
   */
  readonly reached: Rung | undefined;
}

const climb = (task: Task, method: Method, rungs: readonly Rung[]): Climb => ({
  task,
  method,
  rungs,
  reached: rungs.find(({ standing }) => standing === "reached"),
});

/**
 * Plans the next runs, in addition to all earlier runs. For each run length, the first seed runs before the other
 * seeds.
 */
export const planLadder = (options: PlanOptions): LadderRun[] => {
  const results = options.resultsOf(ladderName);
  const own: ResultOf = (run) => resultOf(results, run);
  return tasks.flatMap((task) =>
    methods
      .filter(({ onlyTimed }) => onlyTimed !== true)
      .flatMap((method) =>
        rungsOf(task, method, options, own).flatMap(({ runs, standing }) =>
          standing === "not run" && own(runs[0]!) === undefined ? runs.slice(0, 1) : runs,
        ),
      ),
  );
};

/** Groups planned runs by task and method. */
export const climbsIn = (runs: readonly LadderRun[], own: ResultOf): Climb[] =>
  [...Map.groupBy(runs, ({ task, method }) => `${task.name}/${method.name}`).values()].map((all) =>
    climb(
      all[0]!.task,
      all[0]!.method,
      [...Map.groupBy(all, ({ steps }) => steps).values()].map((some) => judge(some[0]!.task, some, own)),
    ),
  );
