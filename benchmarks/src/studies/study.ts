import type { RangePlot } from "../report/range-plot.ts";
import type { Result, Results } from "./results-file.ts";
import type { Run } from "./run.ts";

/** Looks up the result of a run with its current definition. */
export type ResultOf = (run: Run) => Result | undefined;

/** Writes a plot next to the page. @returns the Markdown that shows the plot. */
export type Draw = (plot: RangePlot) => string;

export interface PlanOptions {
  /** Whether each run has only a few steps, to check that all runs work. */
  readonly quick: boolean;
  readonly seeds: readonly number[];
  /** Results of another study; those of its quick runs if this study is quick. */
  readonly resultsOf: (study: string) => Results;
}

/** Many training runs, compared on one page. */
export interface Study<Planned extends Run> {
  readonly name: string;
  readonly title: string;
  /** One line that describes the work of each run. */
  readonly about: string;
  /** Default number of seeds, and of takes, for each run; command-line options override both. */
  readonly seeds: number;
  readonly takes: number;
  /** Maximum number of seeds. Default: no limit. */
  readonly maxSeeds?: number;
  /** Names of studies whose results the plan depends on. */
  readonly after?: readonly string[];
  /**
   * Whether the plan depends on the study's own results. The study then plans again when all runs of a plan are made.
   */
  readonly isAdaptive?: boolean;
  plan(options: PlanOptions): readonly Planned[];
  /** Content of the page after its head. @param resultsOf results of other studies. */
  page(runs: readonly Planned[], resultOf: ResultOf, draw: Draw, resultsOf: PlanOptions["resultsOf"]): string;
}
