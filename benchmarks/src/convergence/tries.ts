import type { Run } from "../studies/run.ts";
import type { ResultOf } from "../studies/study.ts";
import { type Quality, qualityOf } from "./verdict.ts";

/** A setting that was tried, and its quality on validation samples. */
export interface Try<Tried extends Run> {
  readonly run: Tried;
  /** Undefined if the run diverged. */
  readonly quality: Quality | undefined;
}

/**
 * Results of tries; undefined while a try is missing. Runs that ended by themselves count, whether they converged or
 * diverged. Other failures give no information on a setting.
 */
export const triedIn = <Tried extends Run>(
  runs: readonly Tried[],
  resultOf: ResultOf,
): readonly Try<Tried>[] | undefined => {
  const outcomes = runs.map((run) => resultOf(run)?.outcome);
  if (outcomes.some((outcome) => outcome?.kind !== "done" && outcome?.kind !== "diverged")) return undefined;
  return runs.map((run, i) => ({ run, quality: qualityOf([outcomes[i]]) }));
};
