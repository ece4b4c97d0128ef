import { z } from "zod";
import type { EvaluationJob, Job } from "../job/job.ts";

/** The best evaluation of a run, and how long ago it was. */
export interface BestSoFar {
  /** What evaluations are compared by: `loss`, `accuracy`, or a figure of the model's own. */
  readonly figure: string;
  /** Which of two is better. Not there in checkpoints of versions that took it for the job's. */
  readonly better?: Comparison["better"] | undefined;
  /** Steps done when it was made. */
  readonly step: number;
  /** The figure, of all held-out samples; nothing where no evaluation had a finite one. */
  readonly value: number | null;
  /** Evaluations after it, none of which was better. */
  readonly since: number;
}

export const bestSoFarSchema: z.ZodType<BestSoFar> = z.strictObject({
  figure: z.string(),
  better: z.enum(["lower", "higher"]).optional(),
  step: z.int().min(0),
  value: z.number().nullable(),
  since: z.int().min(0),
});

/** What the evaluations of a job are compared by. */
export type Comparison = NonNullable<EvaluationJob["compareBy"]>;

export const comparisonOf = ({ evaluation: { compareBy } }: Pick<Job, "evaluation">): Comparison =>
  compareBy ?? { figure: "loss", better: "lower" };

/** With one more evaluation. One that is not finite is worse than every other. */
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
 * What a run that goes on knows of evaluations before: nothing, where these were compared by another figure, or the
 * other way round. Neither the best nor the patience of `evaluation.stopAfter` is taken over then.
 */
export const bestBefore = (job: Pick<Job, "evaluation">, saved: BestSoFar | undefined): BestSoFar | undefined => {
  const { figure, better } = comparisonOf(job);
  return saved?.figure === figure && (saved.better ?? better) === better ? saved : undefined;
};

/** Whether something follows from how evaluations compare. */
export const comparesEvaluations = ({ evaluation, checkpoint }: Pick<Job, "evaluation" | "checkpoint">): boolean =>
  evaluation.stopAfter !== undefined || checkpoint.best === true;

/** Whether a run is to end before its last step. */
export const endsEarly = (
  { evaluation: { stopAfter } }: Pick<Job, "evaluation">,
  best: BestSoFar | undefined,
): boolean => stopAfter !== undefined && best !== undefined && best.since >= stopAfter;
