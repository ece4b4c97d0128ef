import type { BucketPlan } from "@skein/tensor-core";
import { z } from "zod";
import type { Job } from "../job.ts";

/**
 * What was measured and decided before a run about the exchange of its gradients. Equal on all ranks, and kept with
 * each checkpoint.
 */
export interface ExchangePlan {
  readonly buckets: BucketPlan;
  /** Part of each tensor's entries that is sent, by path, 1 where it travels dense; with `compression: lags`. */
  readonly densities?: { readonly [path: string]: number } | undefined;
}

export const exchangePlanSchema: z.ZodType<ExchangePlan> = z.strictObject({
  buckets: z.array(z.array(z.string().min(1)).min(1)).min(1),
  densities: z.record(z.string(), z.number().gt(0).max(1)).optional(),
});

/** Whether the buckets or densities of a job follow from measurements before its first step. */
export const isPlanned = ({ buckets, compression, ranks }: Job): boolean =>
  ranks > 1 && (buckets.kind === "mg-wfbp" || compression.kind === "lags");
