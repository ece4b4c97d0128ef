import { median, type Summary } from "@skein/measuring";
import type { Figures, Outcome } from "../studies/outcome.ts";
import { baseline } from "./methods.ts";
import type { TimedMethod, TimesRun } from "./times-plan.ts";

export type OutcomeOf = (run: TimesRun) => Outcome | undefined;

/** One task on one number of ranks. */
export interface Place {
  readonly title: string;
  readonly runs: readonly TimesRun[];
}

export const placesOf = (runs: readonly TimesRun[]): Place[] =>
  [...Map.groupBy(runs, ({ task, ranks }) => `${task.name}, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`)].map(
    ([title, own]) => ({ title, runs: own }),
  );

/** What a run came to beside momentum at its place. */
export interface Beside {
  readonly run: TimesRun;
  readonly figures: Figures;
  /** Mean step of a cycle. */
  readonly seconds: Summary;
  /** How many times as long as one of momentum, and between what that wavers. */
  readonly ratio: { readonly value: number; readonly low: number; readonly high: number } | undefined;
  /** How many times the memory. */
  readonly memoryRatio: number | undefined;
}

const doneOf = (outcome: Outcome | undefined): Figures | undefined => (outcome?.kind === "done" ? outcome : undefined);

const ratioOf = (own: Summary, base: Summary): NonNullable<Beside["ratio"]> => {
  const wavering = own.mad / own.median + base.mad / base.median;
  const value = own.median / base.median;
  return { value, low: value / (1 + wavering), high: value * (1 + wavering) };
};

/** All timed runs of a place that have a result. */
export const besideMomentum = ({ runs }: Place, outcomeOf: OutcomeOf): Beside[] => {
  const timed = runs.filter(({ kind }) => kind === "timed");
  const baseRun = timed.find(({ method }) => method.name === baseline);
  const base = baseRun && doneOf(outcomeOf(baseRun));
  return timed.flatMap((run): Beside[] => {
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

/** Whether a step is as fast as wanted beside one of momentum; open where nothing is wanted, or known of momentum. */
export type Standing = "held" | "missed" | "open";

export const standingOf = ({ run, ratio }: Beside): Standing =>
  run.method.most === undefined || ratio === undefined ? "open" : ratio.value <= run.method.most ? "held" : "missed";

/** A method over all places. */
export interface OverPlaces {
  readonly method: TimedMethod;
  readonly besides: readonly Beside[];
  /** Of the ratios; those of one place waver, but by far less than places differ. */
  readonly middle: number;
  readonly least: number;
  readonly greatest: number;
}

export const overPlaces = (besides: readonly Beside[]): OverPlaces[] =>
  [...Map.groupBy(besides, ({ run }) => run.method.name).values()].flatMap((own): OverPlaces[] => {
    const ratios = own.flatMap(({ ratio }) => ratio?.value ?? []);
    if (ratios.length === 0 || own[0]!.run.method.name === baseline) return [];
    return [
      {
        method: own[0]!.run.method,
        besides: own,
        middle: median(ratios),
        least: Math.min(...ratios),
        greatest: Math.max(...ratios),
      },
    ];
  });
