import { type ExpertsJob, expertsOf, type Job, type PlacementJob } from "@skein/job/node";

/** Settings of experts that are moved during training. */
export interface MovableExperts {
  readonly experts: ExpertsJob;
  readonly placement: PlacementJob;
  /** Width of a token: number of elements. */
  readonly width: number;
}

/**
 * Returns the experts that a job moves. Undefined: the job moves no experts, or every rank has all experts, so that all
 * slots are equivalent.
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

/**
 * Whether a job compares the gain of a move with the cost of the move. If so, all-to-alls are timed before the first
 * step.
 */
export const isMoveWeighed = (job: Pick<Job, "model" | "mesh">): boolean =>
  movableExperts(job)?.placement.when === "pays";
