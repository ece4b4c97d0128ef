import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot, RangeRow } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";
import { resultOf as resultIn, type Results } from "../studies/results-file.ts";
import type { ResultOf, Study } from "../studies/study.ts";
import { type Climb, climbsIn, type LadderRun, minSeeds, type Rung } from "./ladder.ts";
import { baseline } from "./methods.ts";
import type { Task } from "./tasks.ts";
import { planTimes } from "./times-plan.ts";
import { secondOrderTimes } from "./times.ts";

const targetOf = ({ target }: Task): string =>
  target.unit === "%" ? `${target.value} % right` : `${target.value} bits per byte`;

/** Returns mean seconds per step over a cycle of refreshes, by task and method; undefined if not measured. */
export type StepSecondsOf = (climb: Climb) => number | undefined;

const numberOf = (task: Task, value: number): string => value.toFixed(task.target.unit === "%" ? 2 : 3);

const figuresIn = (rung: Rung | undefined, resultOf: ResultOf): Figures[] =>
  (rung?.runs ?? []).flatMap((run) => {
    const outcome = resultOf(run)?.outcome;
    return outcome?.kind === "done" ? [outcome] : [];
  });

/**
 * Steps and seconds that a method needs to reach the target on a task, and their ratios to the baseline's steps and
 * seconds.
 */
interface Standing {
  readonly climb: Climb;
  readonly steps: number | undefined;
  /** Number of steps relative to the baseline. */
  readonly stepsRatio: number | undefined;
  readonly seconds: number | undefined;
  readonly secondsRatio: number | undefined;
}

const standingsOf = (climbs: readonly Climb[], secondsOf: StepSecondsOf): Standing[] => {
  const base = climbs.find(({ method }) => method.name === baseline);
  const secondsTo = (climb: Climb | undefined): number | undefined => {
    const each = climb && secondsOf(climb);
    return each === undefined || climb?.reached === undefined ? undefined : each * climb.reached.steps;
  };
  const ratio = (own: number | undefined, other: number | undefined): number | undefined =>
    own === undefined || other === undefined ? undefined : own / other;
  return climbs.map((climb) => ({
    climb,
    steps: climb.reached?.steps,
    stepsRatio: ratio(climb.reached?.steps, base?.reached?.steps),
    seconds: secondsTo(climb),
    secondsRatio: ratio(secondsTo(climb), secondsTo(base)),
  }));
};

/**
 * Whether longer runs remain to be made: the method has not reached the target, and the longest run length has not been
 * tried.
 */
const isUnfinished = ({ rungs, reached, task }: Climb): boolean =>
  reached === undefined && (rungs.at(-1)?.standing !== "missed" || rungs.at(-1)?.steps !== task.horizons.at(-1));

/** Returns the number of steps to the target as text, or a lower bound if the target is not reached. */
const stepsText = (climb: Climb): string => {
  if (climb.reached !== undefined) return `${climb.reached.steps}`;
  const missed = climb.rungs.findLast(({ standing }) => standing === "missed");
  if (missed === undefined) return "not run";
  return `more than ${missed.steps}${isUnfinished(climb) ? ", not finished" : ""}`;
};

/** Formats a run length with the mean quality over its seeds. */
const formatRung = (task: Task, { steps, quality, standing, runs }: Rung): string => {
  if (quality === undefined) return `${steps}: ${standing === "not run" ? "not run" : "diverged"}`;
  const seeds = runs.length < minSeeds ? ", 1 seed" : "";
  return `${steps}: ${numberOf(task, quality.mean)}${seeds}`;
};

const header = [
  "optimizer",
  "steps",
  `beside ${baseline}`,
  "seeds at that length",
  "ms per step",
  "seconds",
  `beside ${baseline}`,
  "setting",
  "the length before",
];

const cellsOf = ({ climb, stepsRatio, seconds, secondsRatio }: Standing, secondsOf: StepSecondsOf): string[] => {
  const { task, method, rungs, reached } = climb;
  const setting = rungs[0]?.runs[0]?.setting;
  const each = secondsOf(climb);
  const missed = rungs.filter(({ standing }) => standing === "missed");
  const before = missed.at(-1);
  const quality = reached?.quality;
  return [
    method.name,
    stepsText(climb),
    stepsRatio === undefined ? "–" : `${stepsRatio.toFixed(2)}×`,
    quality === undefined
      ? "–"
      : `${numberOf(task, quality.mean)} (${numberOf(task, quality.least)} to ${numberOf(task, quality.greatest)})`,
    each === undefined ? "–" : (1000 * each).toFixed(1),
    seconds === undefined ? "–" : seconds.toFixed(1),
    secondsRatio === undefined ? "–" : `${secondsRatio.toFixed(2)}×`,
    setting === undefined ? "–" : `rate ${setting.peak}, ${method.second.option} ${setting.second}`,
    before === undefined ? "–" : formatRung(task, before),
  ];
};

const plotOf = (task: Task, standings: readonly Standing[]): RangePlot | undefined => {
  const rows = standings.flatMap(({ climb, steps, stepsRatio, secondsRatio }): RangeRow[] => {
    if (steps === undefined || stepsRatio === undefined) return [];
    const { rungs, reached } = climb;
    const before = rungs[rungs.indexOf(reached!) - 1]?.steps ?? steps / 1.4;
    return [
      {
        label: climb.method.name,
        value: stepsRatio,
        // The minimum number of steps is between the longest rung that missed and the rung that reached the target.
        low: (stepsRatio * before) / steps,
        high: stepsRatio,
        solid: stepsRatio <= 0.7,
        note: `${steps} steps${secondsRatio === undefined ? "" : `, ${secondsRatio.toFixed(2)}× the time`}`,
      },
    ];
  });
  if (rows.length < 2) return undefined;
  return {
    name: task.name,
    title: `${task.title}: to ${targetOf(task)}`,
    axis: `steps beside ${baseline}`,
    scale: "log",
    reference: 1,
    legend:
      "marks: the shortest run whose mean over three seeds reaches the target; lines: down to the longest that does not",
    rows,
  };
};

const names = (some: readonly Standing[]): string => some.map(({ climb }) => climb.method.name).join(", ");

/** Returns three sentences that summarize a task. */
const sentencesOf = (task: Task, standings: readonly Standing[]): string => {
  const others = standings.filter(({ climb }) => climb.method.name !== baseline && climb.rungs.length > 0);
  const base = standings.find(({ climb }) => climb.method.name === baseline);
  const few = others.filter(({ stepsRatio }) => stepsRatio !== undefined && stepsRatio <= 0.7);
  const fast = others.filter(({ secondsRatio }) => secondsRatio !== undefined && secondsRatio < 1);
  const slow = others.filter(
    ({ climb, steps, secondsRatio }) =>
      (steps === undefined && !isUnfinished(climb)) || (secondsRatio !== undefined && secondsRatio >= 1),
  );
  const open = others.filter(({ climb }) => isUnfinished(climb));
  return [
    `To ${targetOf(task)} ${baseline} takes ${base === undefined ? "an unknown number of" : stepsText(base.climb)} steps; ${few.length === 0 ? "none takes 0.7 times as many or fewer" : `in 0.7 times as many or fewer are there: ${names(few)}`}.`,
    fast.length === 0
      ? `None of those whose steps were timed is there in less time than ${baseline}.`
      : `In less time than ${baseline}: ${fast.map(({ climb, secondsRatio }) => `${climb.method.name} (${secondsRatio!.toFixed(2)}×)`).join(", ")}.`,
    [
      slow.length === 0
        ? "None is slower, of those that were timed."
        : `Not faster, or not there at all: ${names(slow)}.`,
      ...(open.length === 0 ? [] : [`Not run to its end: ${names(open)}.`]),
    ].join(" "),
  ].join("\n");
};

/** Reads mean step times over a cycle, including refreshes, from results of the study of step times. */
const stepSecondsIn = (times: Results): StepSecondsOf => {
  const timed = planTimes({ quick: false, seeds: [1] }).filter(({ kind, ranks }) => kind === "timed" && ranks === 1);
  return ({ task, method }) => {
    const run = timed.find((one) => one.task.name === task.name && one.method.name === method.name);
    const outcome = run && resultIn(times, run)?.outcome;
    return outcome?.kind === "done" ? outcome.cycleSeconds?.median : undefined;
  };
};

/** Returns a page with a plot, three sentences and a table per task. */
export const ladderPage: Study<LadderRun>["page"] = (runs, resultOf, draw, resultsOf) => {
  const secondsOf = stepSecondsIn(resultsOf(secondOrderTimes.name));
  const climbs = climbsIn(runs, resultOf);
  const sections = [...Map.groupBy(climbs, ({ task }) => task)].map(([task, own]) => {
    const standings = standingsOf(own, secondsOf);
    const plot = plotOf(task, standings);
    const memory = own
      .flatMap(({ method, rungs }) => {
        const [first] = figuresIn(rungs[0], resultOf);
        return first === undefined ? [] : [`${method.name} ${(first.peakMemoryBytes / 2 ** 20).toFixed(0)}`];
      })
      .join(", ");
    return [
      `## ${task.title}`,
      ...(plot === undefined ? [] : [draw(plot)]),
      sentencesOf(task, standings),
      alignColumns([header, ...standings.map((one) => cellsOf(one, secondsOf))]),
      `Memory of a process, MiB: ${memory}.`,
    ].join("\n\n");
  });
  return `Every optimizer is trained for lengths that grow by about 1.4, each with a learning rate that comes up in 30 steps and ends, as a cosine, at a fiftieth of its peak.
*Steps* is the shortest length whose mean over ${minSeeds} seeds, on test samples, reaches the target; where a first seed misses by more than is near, the others
are left out. So a step count is right to a factor of 1.4. Settings were sought on samples held back from training, with the same budget for each
(\`pnpm bench second-order-search\`), for one length. One rank, one core. Milliseconds are means over a cycle of ten steps, refreshes included, as
\`pnpm bench second-order-times\` measured them; seconds are both multiplied, without evaluation and compilation.

${sections.join("\n\n")}
`;
};
