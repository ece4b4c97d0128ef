import { type ExpertShards, splitAfterGate, splitBeforeGate, withoutSplit } from "@skein/moe-parallel";
import type { ExpertsJob, MeshJob } from "./job.ts";
import { expertShardsAxis, tensorAxis } from "./mesh.ts";

type ShardsJob = Pick<ExpertsJob, "shards">;
type TensorMesh = Pick<MeshJob, "tensor">;

/**
 * Returns the schedule by which the ranks along the mesh axis "tensor" divide the work on sharded experts. Undefined:
 * experts are not sharded.
 */
export const buildShards = ({ shards }: ShardsJob, { tensor }: TensorMesh): ExpertShards | undefined => {
  const axes = { axis: tensorAxis, productAxis: expertShardsAxis };
  if (tensor === 1) return undefined;
  switch (shards) {
    case "none":
      return undefined;
    case "baseline":
      return withoutSplit(axes);
    case "auto": // used until a plan exists; all schedules have the same parameters
    case "split-before-gate":
      return splitBeforeGate({ ...axes, tokens: "own" }); // the rank's own positions
    case "split-after-gate":
      return splitAfterGate(axes);
  }
};

/**
 * Returns the number of shards of each expert to which tokens are dispatched separately. Dispatchers treat each of
 * these shards as an expert.
 */
export const numFusedShards = (job: ShardsJob, mesh: TensorMesh): number =>
  buildShards(job, mesh)?.gates === "own" ? mesh.tensor : 1;

/** Whether each rank along "tensor" gates all token positions, instead of only the rank's own positions. */
export const gatesAllPositions = (job: ShardsJob, mesh: TensorMesh): boolean =>
  buildShards(job, mesh)?.gates === "same";
