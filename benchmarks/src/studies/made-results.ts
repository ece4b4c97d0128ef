import type { RangePlot } from "../report/range-plot.ts";
import type { Figures, Outcome } from "./outcome.ts";
import { addResult, type Result, resultOf, type Results } from "./results-file.ts";
import { definitionOf, type Run } from "./run.ts";
import type { Draw, ResultOf } from "./study.ts";

/** Returns an artificial result of a run with a given outcome, for tests of plans and pages. */
export const madeResult = (run: Run, outcome: Outcome): Result => ({
  name: run.name,
  definition: definitionOf(run),
  at: "2026-01-01",
  machine: "m",
  seed: run.job["seed"] as number,
  commit: "c",
  seconds: 1,
  job: run.job,
  outcome,
});

/** Returns artificial results of runs. A run with an undefined outcome has no result. */
export const madeResults = <Made extends Run>(
  runs: readonly Made[],
  outcomeOf: (run: Made) => Outcome | undefined,
): Results => {
  const results: Results = new Map();
  for (const run of runs) {
    const outcome = outcomeOf(run);
    if (outcome !== undefined) addResult(results, madeResult(run, outcome));
  }
  return results;
};

/** Artificial metrics of a successful run, for tests that do not depend on the values. */
export const madeFigures: Omit<Figures, "testAccuracy" | "bitsPerByte"> = {
  testLoss: 1,
  steps: 1,
  batch: 1,
  bytesSentPerStep: 1,
  denseBytesPerStep: 1,
  stepSeconds: { median: 1, mad: 0, n: 1 },
  peakMemoryBytes: 1,
};

/** Returns the page of a study with artificial results, and the plots that the page draws. */
export const madePage = <Made extends Run>(
  page: (runs: readonly Made[], resultOf: ResultOf, draw: Draw) => string,
  runs: readonly Made[],
  outcomeOf: (run: Made) => Outcome | undefined,
): { readonly page: string; readonly plots: readonly RangePlot[] } => {
  const results = madeResults(runs, outcomeOf);
  const plots: RangePlot[] = [];
  const text = page(
    runs,
    (run) => resultOf(results, run),
    (plot) => {
      plots.push(plot);
      return `![${plot.name}](x.svg)`;
    },
  );
  return { page: text, plots };
};
