import { z } from "zod";
import type { EvaluationJob, Job } from "../job/job.ts";

/** The best evaluation of a run, and its age in evaluations. */
export interface BestSoFar {
  /** Figure by which evaluations are compared: `loss`, `accuracy`, or a figure that the model defines. */
  readonly figure: string;
  /** Whether lower or higher is better. Absent: in checkpoints of older versions, which assumed the job's setting. */
  readonly better?: Comparison["better"] | undefined;
  /** Number of steps done before the evaluation. */
  readonly step: number;
  /** Value of the figure over all held-out samples; null if no evaluation had a finite value. */
  readonly value: number | null;
  /** Number of later evaluations, all of which were not better. */
  readonly since: number;
}

export const bestSoFarSchema: z.ZodType<BestSoFar> = z.strictObject({
  figure: z.string(),
  better: z.enum(["lower", "higher"]).optional(),
  step: z.int().min(0),
  value: z.number().nullable(),
  since: z.int().min(0),
});

/** Comparison rule for the evaluations of a job. */
export type Comparison = NonNullable<EvaluationJob["compareBy"]>;

export const comparisonOf = ({ evaluation: { compareBy } }: Pick<Job, "evaluation">): Comparison =>
  compareBy ?? { figure: "loss", better: "lower" };

/** Include one more evaluation. A non-finite value is worse than every finite value. */
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
 * Best evaluation that a resumed run starts from. Absent: earlier evaluations were compared by another figure or in the
 * opposite direction; then neither the best evaluation nor the patience of `evaluation.stopAfter` is kept.
 */
export const bestBefore = (job: Pick<Job, "evaluation">, saved: BestSoFar | undefined): BestSoFar | undefined => {
  const { figure, better } = comparisonOf(job);
  return saved?.figure === figure && (saved.better ?? better) === better ? saved : undefined;
};

/** Whether any setting of a job depends on how evaluations compare. */
export const comparesEvaluations = ({ evaluation, checkpoint }: Pick<Job, "evaluation" | "checkpoint">): boolean =>
  evaluation.stopAfter !== undefined || checkpoint.best === true;

/** Whether a run must end before its last step. */
export const endsEarly = (
  { evaluation: { stopAfter } }: Pick<Job, "evaluation">,
  best: BestSoFar | undefined,
): boolean => stopAfter !== undefined && best !== undefined && best.since >= stopAfter;
