import { recordSchema } from "@skein/cli/node";
import type { LinearCollectiveModel } from "@skein/cost-model";
import { expertsOf, type Job } from "@skein/job/node";
import type { BucketPlan } from "@skein/tensor-core";
import { z } from "zod";
import { type CurvaturePlan, curvaturePlanSchema, isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExpertsPlan, expertsPlanSchema, isExpertsPlanned, isExpertsPlanFor } from "./experts-plan.ts";
import { isMoveWeighed } from "./movable-experts.ts";
import {
  type ExpertSchedulePlan,
  expertSchedulePlanSchema,
  isAllowed,
  isSchedulePlanned,
} from "./expert-schedule-plan.ts";

/**
 * Names of the parts of a run's plan: schedule of sharded experts, token dispatch, gradient exchange, and K-FAC. The
 * values of one part are measured and planned together.
 */
export const planNames = ["expertSchedule", "experts", "exchange", "curvature", "expertExchange"] as const;

export type PlanName = (typeof planNames)[number];

/** Values on which one part of a plan depends, by name. Each value is stored as text. */
export type PlanBasis = Readonly<Record<string, string>>;

/**
 * Plan for the gradient exchange, for curvature, and for the dispatch of tokens to experts, made from measurements
 * before a run. Equal on all ranks, and saved with each checkpoint.
 */
export interface ExchangePlan {
  /** Gradient buckets. Absent: buckets do not depend on measurements. */
  readonly buckets?: BucketPlan | undefined;
  /** Share of each tensor's entries that are sent, by path; 1 for dense tensors. Only with `compression: lags`. */
  readonly densities?: { readonly [path: string]: number } | undefined;
  /** K-FAC variant, owner of each inversion, and buckets of factors. Absent: not planned. */
  readonly curvature?: CurvaturePlan | undefined;
  /** Dispatch of tokens to experts. Absent: not planned. */
  readonly experts?: ExpertsPlan | undefined;
  /**
   * Time model of an all-to-all among the ranks that share experts. Absent: moves of experts do not depend on measured
   * times. Measured only once per run, so that a repeated step makes the same decision.
   */
  readonly expertExchange?: LinearCollectiveModel | undefined;
  /** Planned schedule by which ranks divide the work on sharded experts. Only with `shards: auto`. */
  readonly expertSchedule?: ExpertSchedulePlan | undefined;
  /**
   * Values that each part of the plan depends on. Absent for parts whose values are unknown, as in older checkpoints.
   */
  readonly basis?: { readonly [name in PlanName]?: PlanBasis | undefined } | undefined;
}

/** A plan that contains gradient buckets. */
export type BucketedPlan = ExchangePlan & { readonly buckets: BucketPlan };

/** Schema of a run's plan as stored in a file, such as the manifest of a checkpoint. */
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
  basis: z.partialRecord(z.enum(planNames), z.record(z.string(), z.string())).optional(),
});

/** Whether the buckets or densities of a job depend on measurements before its first step. */
export const isExchangePlanned = ({ buckets, compression, ranks }: Job): boolean =>
  ranks > 1 && (buckets.kind === "mg-wfbp" || buckets.kind === "moe-idle" || compression.kind === "lags");

/** Rules for one part of a plan: which jobs need the part, and which settings the part depends on. */
interface PlanKind {
  /** Name of this part of the plan in messages. */
  readonly title: string;
  readonly fields: readonly Exclude<keyof ExchangePlan, "basis">[];
  /** Returns whether the job leaves the values of this part to planning. */
  readonly isPlanned: (job: Job) => boolean;
  /**
   * Returns the job settings on which this part of the plan depends, in addition to ranks, mesh, hosts, backend, batch
   * and tensors.
   */
  readonly settings: (job: Job) => object;
  /** Returns whether the job allows the planned values. Absent: every job allows the planned values. */
  readonly fits?: (plan: ExchangePlan, job: Job) => boolean;
}

/** Returns the expert settings of a job, except the settings that a plan chooses. */
const expertSettings = (job: Job): object => {
  const { dispatch: _, chunks: __, backwardChunks: ___, ...experts } = expertsOf(job) ?? ({} as never);
  return experts;
};

const kfacSettings = (kfac: Extract<Job["optimizer"], { kind: "kfac" }>): object => {
  const { form, gradientWorkers, factorBuckets, blockSize, inverse, positions, factorEvery, inverseEvery } = kfac;
  return { form, gradientWorkers, factorBuckets, blockSize, inverse, positions, factorEvery, inverseEvery };
};

export const planKinds: { readonly [name in PlanName]: PlanKind } = {
  expertSchedule: {
    title: "the schedule of expert shards",
    fields: ["expertSchedule"],
    isPlanned: isSchedulePlanned,
    settings: expertSettings,
    fits: ({ expertSchedule }, job) => expertSchedule === undefined || isAllowed(job, expertSchedule.schedule),
  },
  experts: {
    title: "token dispatch to experts",
    fields: ["experts"],
    isPlanned: isExpertsPlanned,
    settings: expertSettings,
    fits: ({ experts }, job) => experts === undefined || isExpertsPlanFor(experts, job),
  },
  exchange: {
    title: "gradient buckets",
    fields: ["buckets", "densities"],
    isPlanned: isExchangePlanned,
    settings: ({ buckets, compression, overlap, priorities }) => ({ buckets, compression, overlap, priorities }),
  },
  curvature: {
    title: "K-FAC",
    fields: ["curvature"],
    isPlanned: isCurvaturePlanned,
    settings: ({ optimizer }) => (optimizer.kind === "kfac" ? kfacSettings(optimizer) : {}),
  },
  expertExchange: {
    title: "the time of an exchange of tokens",
    fields: ["expertExchange"],
    isPlanned: isMoveWeighed,
    settings: () => ({}),
  },
};

/** Whether at least one part of a plan must be made for a job before its first step. */
export const isPlanned = (job: Job): boolean => planNames.some((name) => planKinds[name].isPlanned(job));

/** Whether a part of the plan must be planned for a job. @param kept Parts of an earlier plan that are reused. */
export const isDue = (name: PlanName, job: Job, kept: ExchangePlan | undefined): boolean =>
  planKinds[name].isPlanned(job) && planKinds[name].fields.every((field) => kept?.[field] === undefined);
