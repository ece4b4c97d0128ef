import { type ExpertShards, splitAfterGate, splitBeforeGate, withoutSplit } from "@skein/moe-parallel";
import type { ExpertsJob, MeshJob } from "./job.ts";
import { expertShardsAxis, tensorAxis } from "./mesh.ts";

type ShardsJob = Pick<ExpertsJob, "shards">;
type TensorMesh = Pick<MeshJob, "tensor">;

/** Between ranks along "tensor", each of which has all positions of a part of the tokens' hidden values. */
export const buildShards = ({ shards }: ShardsJob, { tensor }: TensorMesh): ExpertShards | undefined => {
  const axes = { axis: tensorAxis, productAxis: expertShardsAxis };
  if (tensor === 1) return undefined;
  switch (shards) {
    case "none":
      return undefined;
    case "baseline":
      return withoutSplit(axes);
    case "auto": // until it is decided; parameters are the same with all
    case "split-before-gate":
      return splitBeforeGate({ ...axes, tokens: "own" }); // the rank's own positions
    case "split-after-gate":
      return splitAfterGate(axes);
  }
};

/** In how many shards each expert receives its tokens: to dispatchers a shard is an expert of its own. */
export const numFusedShards = (job: ShardsJob, mesh: TensorMesh): number =>
  buildShards(job, mesh)?.gates === "own" ? mesh.tensor : 1;

/** Whether ranks along "tensor" gate all their positions alike, and not each its own. */
export const gatesAlike = (job: ShardsJob, mesh: TensorMesh): boolean => buildShards(job, mesh)?.gates === "same";
