import type { Run } from "../studies/run.ts";
import type { ResultOf } from "../studies/study.ts";
import { type Quality, qualityOf } from "./verdict.ts";

/** A search run, and its quality on validation samples. */
export interface Try<Tried extends Run> {
  readonly run: Tried;
  /** Quality on validation samples; undefined if the run diverged. */
  readonly quality: Quality | undefined;
}

/**
 * Returns search runs with their results, or undefined while a result is missing. A run that diverged counts as a
 * result. A run that failed for another reason counts as missing, because the failure says nothing about the setting.
 */
export const triedIn = <Tried extends Run>(
  runs: readonly Tried[],
  resultOf: ResultOf,
): readonly Try<Tried>[] | undefined => {
  const outcomes = runs.map((run) => resultOf(run)?.outcome);
  if (outcomes.some((outcome) => outcome?.kind !== "done" && outcome?.kind !== "diverged")) return undefined;
  return runs.map((run, i) => ({ run, quality: qualityOf([outcomes[i]]) }));
};
