import type { LinearCollectiveModel } from "@skein/cost-model";
import type { BucketPlan } from "@skein/tensor-core";
import { z } from "zod";
import { type CurvaturePlan, curvaturePlanSchema, isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExpertsPlan, expertsPlanSchema, isExpertsPlanned } from "./experts-plan.ts";
import type { Job } from "../job/job.ts";
import { isMoveWeighed } from "../placement/placed-anew.ts";
import { recordSchema } from "../record-schema.ts";
import { type ExpertSchedulePlan, expertSchedulePlanSchema, isScheduleDue } from "./expert-schedule-plan.ts";

/**
 * What was measured and decided before a run about the exchange of its gradients, about curvature, and about the way
 * of tokens to experts. Equal on all ranks, and kept with each checkpoint.
 */
export interface ExchangePlan {
  /** Where they follow from measurements. */
  readonly buckets?: BucketPlan | undefined;
  /** Part of each tensor's entries that is sent, by path, 1 where it travels dense; with `compression: lags`. */
  readonly densities?: { readonly [path: string]: number } | undefined;
  /** Who inverts which factor, where that follows from measurements. */
  readonly curvature?: CurvaturePlan | undefined;
  /** How tokens travel to their experts, where that follows from measurements. */
  readonly experts?: ExpertsPlan | undefined;
  /**
   * What an all-to-all takes among the ranks that share out experts, where it decides whether experts move: measured
   * once, so that a step that is done again decides the same.
   */
  readonly expertExchange?: LinearCollectiveModel | undefined;
  /** Who does what where ranks share each expert out, with `shards: auto`. */
  readonly expertSchedule?: ExpertSchedulePlan | undefined;
}

/** A plan whose buckets are decided. */
export type BucketedPlan = ExchangePlan & { readonly buckets: BucketPlan };

/** What a file with a plan must look like. */
export const exchangePlanSchema: z.ZodType<ExchangePlan> = z.strictObject({
  buckets: z
    .array(z.array(z.string().min(1)).min(1))
    .min(1)
    .optional(),
  densities: recordSchema(z.number().gt(0).max(1)).optional(),
  curvature: curvaturePlanSchema.optional(),
  experts: expertsPlanSchema.optional(),
  expertExchange: z.strictObject({ startupSeconds: z.number().min(0), secondsPerByte: z.number().min(0) }).optional(),
  expertSchedule: expertSchedulePlanSchema.optional(),
});

/**
 * Whether anything of a job is decided by measurements before its first step.
 *
 * @param known what an earlier attempt has decided.
 */
export const isPlanned = (job: Job, known?: ExchangePlan): boolean =>
  (known?.buckets === undefined && isExchangePlanned(job)) ||
  (known?.curvature === undefined && isCurvaturePlanned(job)) ||
  isExpertsPlanned(job, known?.experts) ||
  (known?.expertExchange === undefined && isMoveWeighed(job)) ||
  isScheduleDue(job, known?.expertSchedule);

/** Whether the buckets or densities of a job follow from measurements before its first step. */
export const isExchangePlanned = ({ buckets, compression, ranks }: Job): boolean =>
  ranks > 1 && (buckets.kind === "mg-wfbp" || buckets.kind === "moe-idle" || compression.kind === "lags");
