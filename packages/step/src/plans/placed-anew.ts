/** Experts of a job that are moved during training. */
import { type ExpertsJob, expertsOf, type Job, type PlacementJob } from "@skein/job/node";
export interface MovableExperts {
  readonly experts: ExpertsJob;
  readonly placement: PlacementJob;
  /** Number of elements of a token. */
  readonly width: number;
}

/**
 * Returns the experts that a job moves. Undefined: the job moves no experts, or has a single rank, on which all slots
 * are equivalent.
 */
export const movableExperts = ({ model, mesh }: Pick<Job, "model" | "mesh">): MovableExperts | undefined =>
  model.kind === "gpt" && model.experts?.placement !== undefined && mesh.expert > 1
    ? { experts: model.experts, placement: model.experts.placement, width: model.width }
    : undefined;

/** Returns the reason why moving the experts of a job has no effect. Undefined: moving has an effect. */
export const idlePlacement = (job: Pick<Job, "model" | "mesh">): string | undefined => {
  const experts = expertsOf(job);
  if (experts?.placement === undefined) return undefined;
  if (job.mesh.expert === 1)
    return "model.experts.placement has no effect: with mesh.expert: 1 every rank has all experts";
  return experts.dispatch === "dense"
    ? "model.experts.placement saves no time: with dispatch: dense all slots are sent wherever experts are placed; use dispatch: ragged"
    : undefined;
};

/** Whether the gain of moves is compared with their cost. If so, all-to-alls are measured before the first step. */
export const isMoveWeighed = (job: Pick<Job, "model" | "mesh">): boolean =>
  movableExperts(job)?.placement.when === "pays";
