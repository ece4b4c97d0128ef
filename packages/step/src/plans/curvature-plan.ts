import { recordSchema } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import type { FormPlacement, KfacForm } from "@skein/second-order";
import type { BucketPlan } from "@skein/tensor-core";
import { z } from "zod";

/**
 * Plan for the inverses and factors of K-FAC, made from measurements before a run. Equal on all ranks, and saved with
 * each checkpoint.
 */
export interface CurvaturePlan extends FormPlacement {
  readonly form: KfacForm;
  /** Buckets of factors that are sent together. Factors are named by `sideName`. */
  readonly buckets: BucketPlan;
}

const row = z.union([z.int().min(0), z.enum(["everywhere", "shared-out"])]);

export const curvaturePlanSchema: z.ZodType<CurvaturePlan> = z.strictObject({
  form: z.union([
    z.strictObject({ kind: z.enum(["d", "mpd", "spd", "dp"]) }),
    z.strictObject({ kind: z.enum(["kaisa", "pad"]), fraction: z.number().min(0).max(1) }),
  ]),
  placement: z.strictObject({
    workers: z.int().min(1),
    layers: recordSchema(z.strictObject({ column: z.int().min(0), input: row, gradient: row })),
  }),
  factors: z.enum(["mean", "mean-at-owner", "own"]),
  buckets: z.array(z.array(z.string().min(1)).min(1)).min(1),
});

/** Whether a job's inversion owners or factor buckets are planned from measurements before the first step. */
export const isCurvaturePlanned = ({ optimizer, ranks }: Pick<Job, "optimizer" | "ranks">): boolean =>
  ranks > 1 &&
  optimizer.kind === "kfac" &&
  (optimizer.form === "spd" || optimizer.form === "auto" || optimizer.factorBuckets?.kind === "planned");
