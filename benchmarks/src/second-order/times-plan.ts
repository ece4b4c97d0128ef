import { layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import { baseline, type Method, methods } from "./methods.ts";
import { stageRules } from "./stages.ts";
import { type Task, tasks } from "./tasks.ts";

/** An optimizer whose step time is measured. */
export interface TimedMethod {
  readonly name: string;
  readonly optimizer: Method["optimizer"];
  readonly peaks: Method["peaks"];
  readonly note?: string | undefined;
  /** Maximum allowed ratio of the step time to the step time of momentum. Absent: no limit. */
  readonly most?: number | undefined;
  /** Whether an additional run traces steps, to measure the stages of a step. */
  readonly isTraced: boolean;
}

/** Short training run of a task by a method on several ranks. */
export interface TimesRun extends Run {
  readonly task: Task;
  readonly method: TimedMethod;
  readonly ranks: number;
  /** `timed`: measures step times. `traced`: measures the stages of a step. */
  readonly kind: "timed" | "traced";
}

/** Required maximum step times relative to momentum. */
const wanted: Readonly<Record<string, number>> = {
  eva: 1.1,
  muon: 1.15,
  kfac: 1.5,
  "kfac-256": 1.5,
  "kfac-whole": 1.5,
};
const traced: ReadonlySet<string> = new Set([baseline, "eva", "muon", "soap", "kfac", "kfac-whole"]);
const names = [
  baseline,
  "adamw",
  "eva",
  "eva-f",
  "eva-s",
  "muon",
  "soap",
  "shampoo",
  "lars",
  "lamb",
  "kfac",
] as const satisfies readonly string[];

const timed = ({ name, optimizer, peaks, second, note }: Method): TimedMethod => ({
  name,
  optimizer: { ...optimizer, [second.option]: second.values[0] },
  peaks,
  note,
  most: wanted[name],
  isTraced: traced.has(name),
});

const kfac = methods.find(({ name }) => name === "kfac")!;
/** K-FAC with other block sizes, because the block size determines most of the cost of a refresh and of a step. */
const blockings: readonly TimedMethod[] = [
  ["kfac-256", { blockSize: 256 }, "inverses in blocks of at most 256 rows, anew every 10 steps"] as const,
  ["kfac-whole", {}, "inverses of whole factors, anew every 10 steps"] as const,
].map(([name, size, note]) => {
  const { blockSize: _, ...whole } = kfac.optimizer;
  return timed({ ...kfac, name, optimizer: { ...whole, ...size }, note });
});

/** Methods of the study of steps to a target, and K-FAC with smaller blocks and with full factors. */
export const timedMethods: readonly TimedMethod[] = [
  ...names.map((name) => timed(methods.find((method) => method.name === name)!)),
  ...blockings,
];

/** Rank counts on two cores: one rank has a core for itself, four ranks share both cores. */
export const numbersOfRanks: readonly number[] = [1, 4];

/** Number of steps from one refresh to the next. */
export const cycle = 10;
/** Expected step time relative to momentum, used only to estimate how long a study takes. */
const expectedTimes: Readonly<Record<string, number>> = { shampoo: 15, "kfac-whole": 8, soap: 3, kfac: 2 };

/** Number of steps of a run. A traced run has twenty steps: one cycle of warm-up, and one measured cycle. */
const lengths = {
  timed: { steps: 5 + 4 * cycle, warmUpSteps: 5 },
  traced: { steps: 2 * cycle, warmUpSteps: cycle },
} as const;

const runOf = (
  task: Task,
  ranks: number,
  method: TimedMethod,
  kind: TimesRun["kind"],
  { quick, seed }: { readonly quick: boolean; readonly seed: number },
): TimesRun => {
  const { steps, warmUpSteps } = quick ? { steps: cycle + 1, warmUpSteps: 1 } : lengths[kind];
  const prefix = `${task.name}/${ranks}-ranks/${method.name}`;
  return {
    name: `${prefix}/${kind}`,
    job: layJobs(task.job, task.quick, {
      ranks,
      steps,
      seed,
      optimizer: method.optimizer,
      // A small rate, because the quality does not matter but the loss must stay finite.
      learningRate: { peak: method.peaks[task.name]! / 10 },
    }),
    core: true,
    warmUpSteps,
    cycle,
    ...(kind === "traced" && { stages: stageRules }),
    minutes: 10,
    expected: { seconds: 3 + steps * task.stepSeconds * (ranks / 2 + 0.5) * (expectedTimes[method.name] ?? 1), prefix },
    task,
    method,
    ranks,
    kind,
  };
};

/** Plans every task, number of ranks and method. Runs that are compared with each other are adjacent. */
export const planTimes = ({ quick, seeds }: Pick<PlanOptions, "quick" | "seeds">): TimesRun[] =>
  tasks.flatMap((task) =>
    numbersOfRanks.flatMap((ranks) =>
      (["timed", "traced"] as const).flatMap((kind) =>
        timedMethods
          .filter(({ isTraced }) => kind === "timed" || isTraced)
          .map((method) => runOf(task, ranks, method, kind, { quick, seed: seeds[0]! })),
      ),
    ),
  );
