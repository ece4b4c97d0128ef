import { recordSchema } from "@skein/cli/node";
import { expertsOf, hasShards, type Job, type ShardSchedule } from "@skein/job/node";
import { z } from "zod";

/**
 * Planned schedule by which the ranks along the mesh axis "tensor" divide the work on sharded experts. Chosen before
 * the first step.
 */
export interface ExpertSchedulePlan {
  readonly schedule: ShardSchedule;
  /** Predicted time of a pass through an expert layer in seconds, for each schedule that the dispatcher allows. */
  readonly seconds: Readonly<Record<string, number>>;
}

/**
 * Schema of the planned expert schedule in a checkpoint. Older checkpoints also have a key `mesh`, which is ignored.
 */
export const expertSchedulePlanSchema: z.ZodType<ExpertSchedulePlan> = z.object({
  schedule: z.enum(["baseline", "split-before-gate", "split-after-gate"]),
  seconds: recordSchema(z.number().min(0)),
});

/** Whether the job allows a schedule: "split-after-gate" sends slots of equal size, so it needs dense dispatch. */
export const isAllowed = (job: Pick<Job, "model">, schedule: ShardSchedule): boolean =>
  schedule !== "split-after-gate" || expertsOf(job)?.dispatch === "dense";

/** Whether the job leaves the schedule of the work on sharded experts to planning from measurements. */
export const isSchedulePlanned = (job: Pick<Job, "model" | "mesh">): boolean =>
  hasShards(job) && expertsOf(job)!.shards === "auto";

/** Replaces `auto` in the job by the planned schedule. */
export const withPlannedSchedule = (job: Job, plan: ExpertSchedulePlan | undefined): Job => {
  const { model } = job;
  if (plan === undefined || model.kind !== "gpt" || model.experts?.shards !== "auto") return job;
  return { ...job, model: { ...model, experts: { ...model.experts, shards: plan.schedule } } };
};
