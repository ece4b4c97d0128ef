import { median, type Summary } from "@skein/measuring";
import type { Figures, Outcome } from "../studies/outcome.ts";
import { baseline } from "./methods.ts";
import type { TimedMethod, TimesRun } from "./times-plan.ts";

export type OutcomeOf = (run: TimesRun) => Outcome | undefined;

/** Runs of one task with one number of ranks. */
export interface Place {
  readonly title: string;
  readonly runs: readonly TimesRun[];
}

export const placesOf = (runs: readonly TimesRun[]): Place[] =>
  [...Map.groupBy(runs, ({ task, ranks }) => `${task.name}, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`)].map(
    ([title, own]) => ({ title, runs: own }),
  );

/** Result of a run, compared with momentum on the same task and number of ranks. */
export interface ComparedRun {
  readonly run: TimesRun;
  readonly figures: Figures;
  /** Mean seconds per step over a cycle. */
  readonly seconds: Summary;
  /**
   * Step time relative to momentum, with a range from the median absolute deviations of both runs. Undefined: momentum
   * was not measured.
   */
  readonly ratio: { readonly value: number; readonly low: number; readonly high: number } | undefined;
  /** Peak memory relative to momentum. */
  readonly memoryRatio: number | undefined;
}

const doneOf = (outcome: Outcome | undefined): Figures | undefined => (outcome?.kind === "done" ? outcome : undefined);

const ratioOf = (own: Summary, base: Summary): NonNullable<ComparedRun["ratio"]> => {
  const relativeDeviation = own.mad / own.median + base.mad / base.median;
  const value = own.median / base.median;
  return { value, low: value / (1 + relativeDeviation), high: value * (1 + relativeDeviation) };
};

/** Compares all finished timed runs of a task and number of ranks with momentum. */
export const compareWithMomentum = ({ runs }: Place, outcomeOf: OutcomeOf): ComparedRun[] => {
  const timed = runs.filter(({ kind }) => kind === "timed");
  const baseRun = timed.find(({ method }) => method.name === baseline);
  const base = baseRun && doneOf(outcomeOf(baseRun));
  return timed.flatMap((run): ComparedRun[] => {
    const figures = doneOf(outcomeOf(run));
    if (figures?.cycleSeconds === undefined) return [];
    return [
      {
        run,
        figures,
        seconds: figures.cycleSeconds,
        ratio: base?.cycleSeconds && ratioOf(figures.cycleSeconds, base.cycleSeconds),
        memoryRatio: base && figures.peakMemoryBytes / base.peakMemoryBytes,
      },
    ];
  });
};

/**
 * Result of comparing a step time with the allowed time relative to momentum. `open`: no limit is set, or momentum was
 * not measured.
 */
export type Standing = "held" | "missed" | "open";

export const standingOf = ({ run, ratio }: ComparedRun): Standing =>
  run.method.most === undefined || ratio === undefined ? "open" : ratio.value <= run.method.most ? "held" : "missed";

/** Results of a method over all tasks and rank counts. */
export interface OverPlaces {
  readonly method: TimedMethod;
  readonly comparedRuns: readonly ComparedRun[];
  /**
   * Median of the step-time ratios over tasks and rank counts; `least` and `greatest` are the minimum and maximum.
   * Repeated measurements of one ratio vary much less than this range.
   */
  readonly middle: number;
  readonly least: number;
  readonly greatest: number;
}

export const overPlaces = (comparedRuns: readonly ComparedRun[]): OverPlaces[] =>
  [...Map.groupBy(comparedRuns, ({ run }) => run.method.name).values()].flatMap((own): OverPlaces[] => {
    const ratios = own.flatMap(({ ratio }) => ratio?.value ?? []);
    if (ratios.length === 0 || own[0]!.run.method.name === baseline) return [];
    return [
      {
        method: own[0]!.run.method,
        comparedRuns: own,
        middle: median(ratios),
        least: Math.min(...ratios),
        greatest: Math.max(...ratios),
      },
    ];
  });
