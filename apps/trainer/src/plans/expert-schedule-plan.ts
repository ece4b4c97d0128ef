import { z } from "zod";
import { expertsOf, hasShards } from "../job/experts-of.ts";
import type { Job, ShardSchedule } from "../job/job.ts";
import { recordSchema } from "../files/record-schema.ts";

/** Who does what where ranks along "tensor" share each expert out, decided before the first step. */
export interface ExpertSchedulePlan {
  readonly schedule: ShardSchedule;
  /** Of a pass through a layer, by each schedule that its dispatcher allows. */
  readonly seconds: Readonly<Record<string, number>>;
}

/** Older checkpoints have another key, `mesh`, which is not read. */
export const expertSchedulePlanSchema: z.ZodType<ExpertSchedulePlan> = z.object({
  schedule: z.enum(["baseline", "split-before-gate", "split-after-gate"]),
  seconds: recordSchema(z.number().min(0)),
});

/** What sends slots of one size goes by dense dispatch alone. */
export const isAllowed = (job: Pick<Job, "model">, schedule: ShardSchedule): boolean =>
  schedule !== "split-after-gate" || expertsOf(job)?.dispatch === "dense";

/** Whether the job leaves the schedule of its expert shards to measurements. */
export const isSchedulePlanned = (job: Pick<Job, "model" | "mesh">): boolean =>
  hasShards(job) && expertsOf(job)!.shards === "auto";

/** The job with the schedule of its plan in the place of `auto`. */
export const withPlannedSchedule = (job: Job, plan: ExpertSchedulePlan | undefined): Job => {
  const { model } = job;
  if (plan === undefined || model.kind !== "gpt" || model.experts?.shards !== "auto") return job;
  return { ...job, model: { ...model, experts: { ...model.experts, shards: plan.schedule } } };
};
