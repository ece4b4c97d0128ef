import { expertsOf } from "../job/experts-of.ts";
import type { ExpertsJob, Job, PlacementJob } from "../job/job.ts";

/** Experts that are placed anew while a job trains. */
export interface PlacedAnew {
  readonly experts: ExpertsJob;
  readonly placement: PlacementJob;
  /** Numbers of a token. */
  readonly width: number;
}

/** Those of a job, if any: on one rank all places are alike. */
export const placedAnew = ({ model, mesh }: Pick<Job, "model" | "mesh">): PlacedAnew | undefined =>
  model.kind === "gpt" && model.experts?.placement !== undefined && mesh.expert > 1
    ? { experts: model.experts, placement: model.experts.placement, width: model.width }
    : undefined;

/** Why it changes nothing to place the experts of a job anew, where that is so. */
export const idlePlacement = (job: Pick<Job, "model" | "mesh">): string | undefined => {
  const experts = expertsOf(job);
  if (experts?.placement === undefined) return undefined;
  if (job.mesh.expert === 1)
    return "model.experts.placement has no effect: with mesh.expert: 1 every rank has all experts";
  return experts.dispatch === "dense"
    ? "model.experts.placement saves no time: with dispatch: dense all slots travel wherever experts lie; use dispatch: ragged"
    : undefined;
};

/** Whether what moves gain is weighed against what they take, for which exchanges are timed before the first step. */
export const isMoveWeighed = (job: Pick<Job, "model" | "mesh">): boolean => placedAnew(job)?.placement.when === "pays";
