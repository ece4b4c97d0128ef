import { z } from "zod";
import { expertsOf, hasShards } from "../building/experts-of.ts";
import type { Job, ShardSchedule } from "../job/job.ts";
import { recordSchema } from "../record-schema.ts";

/** Who does what where ranks along "tensor" share each expert out, decided before the first step. */
export interface ExpertSchedulePlan {
  readonly schedule: ShardSchedule;
  /** Ranks that it was decided for. */
  readonly mesh: { readonly expert: number; readonly tensor: number };
  /** Of a pass through a layer, by each schedule that its dispatcher allows. */
  readonly seconds: Readonly<Record<string, number>>;
}

export const expertSchedulePlanSchema: z.ZodType<ExpertSchedulePlan> = z.strictObject({
  schedule: z.enum(["baseline", "split-before-gate", "split-after-gate"]),
  mesh: z.strictObject({ expert: z.int().min(1), tensor: z.int().min(1) }),
  seconds: recordSchema(z.number().min(0)),
});

/** What sends slots of one size goes by dense dispatch alone. */
export const isAllowed = (job: Pick<Job, "model">, schedule: ShardSchedule): boolean =>
  schedule !== "split-after-gate" || expertsOf(job)?.dispatch === "dense";

/**
 * Whether the schedule of a job's experts is still to be decided.
 *
 * @param known what an earlier attempt has decided, which stays on the same mesh, and where the job still allows it.
 */
export const isScheduleDue = (job: Pick<Job, "model" | "mesh">, known?: ExpertSchedulePlan): boolean => {
  if (!hasShards(job) || expertsOf(job)!.shards !== "auto") return false;
  const { expert, tensor } = job.mesh;
  const stays = known?.mesh.expert === expert && known.mesh.tensor === tensor && isAllowed(job, known.schedule);
  return !stays;
};

/** The job with the schedule of its plan in the place of `auto`. */
export const withPlannedSchedule = (job: Job, plan: ExpertSchedulePlan | undefined): Job => {
  const { model } = job;
  if (plan === undefined || model.kind !== "gpt" || model.experts?.shards !== "auto") return job;
  return { ...job, model: { ...model, experts: { ...model.experts, shards: plan.schedule } } };
};
