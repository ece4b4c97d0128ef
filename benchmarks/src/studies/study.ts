import type { RangePlot } from "../report/range-plot.ts";
import type { Result, Results } from "./results-file.ts";
import type { Run } from "./run.ts";

/** Looks up the result of a run with its current definition. */
export type ResultOf = (run: Run) => Result | undefined;

/** Writes a plot next to the page. @returns Markdown that shows the plot. */
export type Draw = (plot: RangePlot) => string;

export interface PlanOptions {
  /** Whether runs have only a few steps, to check that all runs work. */
  readonly quick: boolean;
  readonly seeds: readonly number[];
  /** Returns the results of another study, from its quick runs if this study is quick. */
  readonly resultsOf: (study: string) => Results;
}

/** Set of training runs that are compared on one page. */
export interface Study<Planned extends Run> {
  readonly name: string;
  readonly title: string;
  /** One line that describes what each run does. */
  readonly about: string;
  /**
   * Default number of seeds per run, which a command-line option overrides. `takes` is the default number of
   * repetitions per run.
   */
  readonly seeds: number;
  readonly takes: number;
  /** Maximum number of seeds. Default: no limit. */
  readonly maxSeeds?: number;
  /** Names of studies whose results the plan depends on. */
  readonly after?: readonly string[];
  /**
   * Whether the plan depends on the study's own results. If so, the study plans again after all runs of a plan.
   * Default: false.
   */
  readonly isAdaptive?: boolean;
  plan(options: PlanOptions): readonly Planned[];
  /**
   * Returns the content of the page after its head.
   *
   * @param resultsOf Returns the results of other studies.
   */
  page(runs: readonly Planned[], resultOf: ResultOf, draw: Draw, resultsOf: PlanOptions["resultsOf"]): string;
}
