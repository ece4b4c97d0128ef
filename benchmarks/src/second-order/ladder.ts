import { type Quality, qualityOf } from "../convergence/verdict.ts";
import { layJobs } from "../studies/job-file.ts";
import { resultOf } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions, ResultOf } from "../studies/study.ts";
import { type Method, methods } from "./methods.ts";
import { chooseSetting, jobOf, searchName } from "./search-plan.ts";
import { type Task, tasks } from "./tasks.ts";

export const ladderName = "second-order";
/** How many seeds a claim rests on. */
export const leastSeeds = 3;

/** A task trained by a method for one of its horizons. */
export interface LadderRun extends Run {
  readonly task: Task;
  readonly method: Method;
  readonly steps: number;
  readonly seed: number;
}

/** All seeds of one length of a run. */
export interface Rung {
  readonly steps: number;
  readonly runs: readonly LadderRun[];
  /** Of the seeds that are there. */
  readonly quality: Quality | undefined;
  /** `missed` also where a first seed is so far off that others were not tried. */
  readonly standing: "reached" | "missed" | "not run";
}

/** By how much a quality falls short of a target; below 0 where it is better. */
export const shortBy = ({ target }: Task, { mean }: Pick<Quality, "mean">): number =>
  target.unit === "%" ? target.value - mean : mean - target.value;

const lackOf = (task: Task, method: Method, quick: boolean): string =>
  `its setting has not been sought as it is defined now; first run pnpm bench ${searchName}${quick ? " --quick" : ""}, for this row alone with --only ${task.name}/${method.name}`;

/**
 * The rungs of a method, shortest first, up to the first that reaches the target. Of a rung the first seed comes first;
 * where it misses by more than the task calls near, the others are left out.
 */
const rungsOf = (task: Task, method: Method, { quick, seeds, resultsOf }: PlanOptions, own: ResultOf): Rung[] => {
  const sought = resultsOf(searchName);
  const choice = chooseSetting(task, method, quick, (run) => resultOf(sought, run));
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
    steps,
    seed,
  });
  const rungs: Rung[] = [];
  for (const steps of quick ? task.horizons.slice(0, 1) : task.horizons) {
    const [first, ...others] = seeds.map((seed) => runOf(steps, seed)) as [LadderRun, ...LadderRun[]];
    const firstOutcome = own(first)?.outcome;
    const firstQuality = qualityOf([firstOutcome]);
    if (firstOutcome === undefined)
      return [...rungs, { steps, runs: [first], quality: undefined, standing: "not run" }];
    if (firstQuality === undefined || shortBy(task, firstQuality) > task.near) {
      rungs.push({ steps, runs: [first], quality: firstQuality, standing: "missed" });
      continue;
    }
    const runs = [first, ...others];
    const outcomes = runs.map((run) => own(run)?.outcome);
    const quality = qualityOf(outcomes);
    if (outcomes.includes(undefined)) return [...rungs, { steps, runs, quality, standing: "not run" }];
    const isReached = quality !== undefined && shortBy(task, quality) <= 0;
    rungs.push({ steps, runs, quality, standing: isReached ? "reached" : "missed" });
    if (isReached) break;
  }
  return rungs;
};

/** A method on a task: what was tried, and how it came out. */
export interface Climb {
  readonly task: Task;
  readonly method: Method;
  readonly rungs: readonly Rung[];
  /** The shortest run whose mean over the seeds reaches the target. */
  readonly reached: Rung | undefined;
}

export const climbsOf = (options: PlanOptions, own: ResultOf): Climb[] =>
  tasks.flatMap((task) =>
    methods.map((method) => {
      const rungs = rungsOf(task, method, options, own);
      return { task, method, rungs, reached: rungs.find(({ standing }) => standing === "reached") };
    }),
  );

/** What is to be run next, and all that was run before it. */
export const planLadder = (options: PlanOptions): LadderRun[] => {
  const results = options.resultsOf(ladderName);
  return climbsOf(options, (run) => resultOf(results, run)).flatMap(({ rungs }) => rungs.flatMap(({ runs }) => runs));
};
