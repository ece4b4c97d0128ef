import type { RangePlot } from "../report/range-plot.ts";
import type { Result, Results } from "./results-file.ts";
import type { Run } from "./run.ts";

/** How a result is asked for: that of a run as it is defined now. */
export type ResultOf = (run: Run) => Result | undefined;

/** Put a plot beside the page. @returns the Markdown that shows it. */
export type Draw = (plot: RangePlot) => string;

export interface PlanOptions {
  /** A few steps of each run: whether all of them run. */
  readonly quick: boolean;
  readonly seeds: readonly number[];
  /** What another study has found: of --quick runs where these are quick, too. */
  readonly resultsOf: (study: string) => Results;
}

/** Many training runs, compared on one page. */
export interface Study<Planned extends Run> {
  readonly name: string;
  readonly title: string;
  /** What is done in each run, in one line. */
  readonly about: string;
  /** How many seeds and takes each run has unless the command line says otherwise. */
  readonly seeds: number;
  readonly takes: number;
  /** The most seeds that it knows what to do with. Default: any number. */
  readonly maxSeeds?: number;
  /** Studies whose results it plans by. */
  readonly after?: readonly string[];
  /** Whether what it plans depends on its own results: it is planned again when all runs of a plan are made. */
  readonly isAdaptive?: boolean;
  plan(options: PlanOptions): readonly Planned[];
  /** What follows the head of the page. @param resultsOf of other studies. */
  page(runs: readonly Planned[], resultOf: ResultOf, draw: Draw, resultsOf: PlanOptions["resultsOf"]): string;
}
