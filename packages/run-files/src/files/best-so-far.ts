import { z } from "zod";

/** The best evaluation of a run, and the number of evaluations since. */
export interface BestSoFar {
  /** Name of the metric by which evaluations are compared: `loss`, `accuracy`, or a metric that the model defines. */
  readonly figure: string;
  /**
   * Whether lower or higher values are better. Absent in checkpoints of older versions, which used the job's setting.
   */
  readonly better?: "lower" | "higher" | undefined;
  /** Number of steps completed before the evaluation. */
  readonly step: number;
  /** Value of the metric over all held-out samples; null if no evaluation had a finite value. */
  readonly value: number | null;
  /** Number of later evaluations, which were not better. */
  readonly since: number;
}

export const bestSoFarSchema: z.ZodType<BestSoFar> = z.strictObject({
  figure: z.string(),
  better: z.enum(["lower", "higher"]).optional(),
  step: z.int().min(0),
  value: z.number().nullable(),
  since: z.int().min(0),
});
