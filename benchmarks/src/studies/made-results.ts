import type { Outcome } from "./outcome.ts";
import { addResult, type Results } from "./results-file.ts";
import { definitionOf, type Run } from "./run.ts";

/** Results as if `runs` had come out so; for tests of plans and pages. */
export const madeResults = <Made extends Run>(
  runs: readonly Made[],
  outcomeOf: (run: Made) => Outcome | undefined,
): Results => {
  const results: Results = new Map();
  for (const run of runs) {
    const outcome = outcomeOf(run);
    if (outcome === undefined) continue;
    const { name, job } = run;
    const definition = definitionOf(run);
    addResult(results, {
      name,
      definition,
      at: "2026-01-01",
      machine: "m",
      seed: job["seed"] as number,
      commit: "c",
      seconds: 1,
      job,
      outcome,
    });
  }
  return results;
};
