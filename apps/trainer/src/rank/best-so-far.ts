import { z } from "zod";
import type { Job } from "../job/job.ts";

/** The evaluation of a run with the lowest loss, and how long ago it was. */
export interface BestSoFar {
  /** Steps done when it was made. */
  readonly step: number;
  /** Mean over the held-out samples; nothing where no evaluation had a finite one. */
  readonly loss: number | null;
  /** Evaluations after it, none of which was better. */
  readonly since: number;
}

export const bestSoFarSchema: z.ZodType<BestSoFar> = z.strictObject({
  step: z.int().min(0),
  loss: z.number().nullable(),
  since: z.int().min(0),
});

/** With one more evaluation. One that is not finite is worse than every other. */
export const bestAfter = (before: BestSoFar | undefined, step: number, loss: number): BestSoFar => {
  if (before === undefined) return { step, loss: Number.isFinite(loss) ? loss : null, since: 0 };
  return Number.isFinite(loss) && (before.loss === null || loss < before.loss)
    ? { step, loss, since: 0 }
    : { ...before, since: before.since + 1 };
};

/** Whether something follows from how evaluations compare. */
export const comparesEvaluations = ({ evaluation, checkpoint }: Pick<Job, "evaluation" | "checkpoint">): boolean =>
  evaluation.stopAfter !== undefined || checkpoint.best === true;

/** Whether a run is to end before its last step. */
export const endsEarly = (
  { evaluation: { stopAfter } }: Pick<Job, "evaluation">,
  best: BestSoFar | undefined,
): boolean => stopAfter !== undefined && best !== undefined && best.since >= stopAfter;
