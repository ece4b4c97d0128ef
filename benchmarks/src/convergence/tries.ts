import type { Run } from "../studies/run.ts";
import type { ResultOf } from "../studies/study.ts";
import { type Quality, qualityOf } from "./verdict.ts";

/** A setting that was tried, and what came of it on validation samples. */
export interface Try<Tried extends Run> {
  readonly run: Tried;
  /** None where it diverged. */
  readonly quality: Quality | undefined;
}

/**
 * What came of tries; nothing while one is missing. Those that ended by themselves count, well or not: what failed
 * otherwise says nothing of a setting.
 */
export const triedIn = <Tried extends Run>(
  runs: readonly Tried[],
  resultOf: ResultOf,
): readonly Try<Tried>[] | undefined => {
  const outcomes = runs.map((run) => resultOf(run)?.outcome);
  if (outcomes.some((outcome) => outcome?.kind !== "done" && outcome?.kind !== "diverged")) return undefined;
  return runs.map((run, i) => ({ run, quality: qualityOf([outcomes[i]]) }));
};
