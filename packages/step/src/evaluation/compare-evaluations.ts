import type { Job } from "@skein/job/node";
import type { BestSoFar } from "@skein/run-files/node";

/** Metric by which the evaluations of a job are compared, and whether lower or higher values are better. */
export type Comparison = NonNullable<Job["evaluation"]["compareBy"]>;

export const comparisonOf = ({ evaluation: { compareBy } }: Pick<Job, "evaluation">): Comparison =>
  compareBy ?? { figure: "loss", better: "lower" };

/**
 * Returns the best evaluation so far, including a new evaluation at `step`. A non-finite value is worse than every
 * finite value.
 */
export const bestAfter = (
  { figure, better }: Comparison,
  before: BestSoFar | undefined,
  step: number,
  value: number,
): BestSoFar => {
  if (before === undefined) return { figure, better, step, value: Number.isFinite(value) ? value : null, since: 0 };
  const isBetter =
    Number.isFinite(value) &&
    (before.value === null || (better === "lower" ? value < before.value : value > before.value));
  return isBetter ? { figure, better, step, value, since: 0 } : { ...before, since: before.since + 1 };
};

/**
 * Returns the best evaluation with which a resumed run starts. Undefined if earlier evaluations were compared by
 * another metric or in the opposite direction. In that case, the count for `evaluation.stopAfter` also restarts at 0.
 */
export const bestBefore = (job: Pick<Job, "evaluation">, saved: BestSoFar | undefined): BestSoFar | undefined => {
  const { figure, better } = comparisonOf(job);
  return saved?.figure === figure && (saved.better ?? better) === better ? saved : undefined;
};

/** Whether any setting of a job depends on the comparison of evaluations. */
export const comparesEvaluations = ({ evaluation, checkpoint }: Pick<Job, "evaluation" | "checkpoint">): boolean =>
  evaluation.stopAfter !== undefined || checkpoint.best === true;

/** Whether a run must end before its last step, because evaluations no longer improve. */
export const endsEarly = (
  { evaluation: { stopAfter } }: Pick<Job, "evaluation">,
  best: BestSoFar | undefined,
): boolean => stopAfter !== undefined && best !== undefined && best.since >= stopAfter;
