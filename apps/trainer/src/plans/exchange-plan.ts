import type { LinearCollectiveModel } from "@skein/cost-model";
import type { BucketPlan } from "@skein/tensor-core";
import { z } from "zod";
import { type CurvaturePlan, curvaturePlanSchema, isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExpertsPlan, expertsPlanSchema, isExpertsPlanned, isExpertsPlanFor } from "./experts-plan.ts";
import type { Job } from "../job/job.ts";
import { expertsOf } from "../job/experts-of.ts";
import { isMoveWeighed } from "./placed-anew.ts";
import { recordSchema } from "../files/record-schema.ts";
import {
  type ExpertSchedulePlan,
  expertSchedulePlanSchema,
  isAllowed,
  isSchedulePlanned,
} from "./expert-schedule-plan.ts";

/** The parts of a plan that are measured and decided together. */
export const planNames = ["expertSchedule", "experts", "exchange", "curvature", "expertExchange"] as const;

export type PlanName = (typeof planNames)[number];

/** What a part of a plan depends on, by name, as text for messages. */
export type PlanBasis = Readonly<Record<string, string>>;

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
  /** What each part was made for. Absent parts, from older checkpoints: not known. */
  readonly basis?: { readonly [name in PlanName]?: PlanBasis | undefined } | undefined;
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
  basis: z.partialRecord(z.enum(planNames), z.record(z.string(), z.string())).optional(),
});

/** Whether the buckets or densities of a job follow from measurements before its first step. */
export const isExchangePlanned = ({ buckets, compression, ranks }: Job): boolean =>
  ranks > 1 && (buckets.kind === "mg-wfbp" || buckets.kind === "moe-idle" || compression.kind === "lags");

/** A part of a plan: when a job asks for it, and what it depends on. */
interface PlanKind {
  /** For messages. */
  readonly title: string;
  readonly fields: readonly Exclude<keyof ExchangePlan, "basis">[];
  /** Whether the job leaves this part to measurements. */
  readonly isPlanned: (job: Job) => boolean;
  /** Settings of the job that the part depends on, next to ranks, mesh, hosts, backend, batch and tensors. */
  readonly settings: (job: Job) => object;
  /** Whether the job allows what the plan holds. Default: always. */
  readonly fits?: (plan: ExchangePlan, job: Job) => boolean;
}

/** Everything of the job's experts except what a plan of them decides. */
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
    title: "how tokens travel to experts",
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

/** Whether anything of a job is decided by measurements before its first step. */
export const isPlanned = (job: Job): boolean => planNames.some((name) => planKinds[name].isPlanned(job));

/** Whether a part is to be planned for a job. @param kept of an earlier plan. */
export const isDue = (name: PlanName, job: Job, kept: ExchangePlan | undefined): boolean =>
  planKinds[name].isPlanned(job) && planKinds[name].fields.every((field) => kept?.[field] === undefined);
