import type { Outcome } from "./outcome.ts";
import { addResult, type Result, type Results } from "./results-file.ts";
import { definitionOf, type Run } from "./run.ts";

/** A result as if `run` had come out so; for tests of plans and pages. */
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

/** Results as if `runs` had come out so. */
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
