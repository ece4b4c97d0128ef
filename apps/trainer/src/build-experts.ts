import type { GptExperts } from "@skein/models";
import {
  balanceLoss,
  balancingBiasGate,
  byBatchPriority,
  byChance,
  byChoice,
  byProbability,
  byToken,
  capacityByFactor,
  capacityByMaximum,
  type CapacityRule,
  cosineGate,
  denseDispatcher,
  type DropOrder,
  duplicateFreeDispatcher,
  expertChoiceGate,
  type Experts,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  importanceLoadLoss,
  moeLayer,
  noisyTopKGate,
  raggedDispatcher,
  sigmoidGate,
  sinkhornGate,
  softGate,
  swigluExperts,
  switchGate,
  type TokenDispatcher,
  zLoss,
} from "@skein/moe-parallel";
import type { ExpertsJob, MeshJob } from "./job.ts";
import { dataAxis, expertAxis, expertLevelAxes, worldAxis } from "./mesh.ts";
import type { SettledExperts } from "./planning/experts-plan.ts";

const dropOrders: Readonly<Record<ExpertsJob["dropOrder"], DropOrder>> = {
  token: byToken,
  choice: byChoice,
  probability: byProbability,
  "batch-priority": byBatchPriority,
  chance: byChance,
};

const buildGate = (job: Omit<ExpertsJob, "dispatch" | "chunks">, width: number): Gate => {
  const losses = [
    ...(job.balanceLoss > 0 ? [balanceLoss({ coefficient: job.balanceLoss })] : []),
    ...(job.importanceLoadLoss > 0 ? [importanceLoadLoss({ coefficient: job.importanceLoadLoss })] : []),
    ...(job.zLoss > 0 ? [zLoss({ coefficient: job.zLoss })] : []),
  ];
  const router = { width, numExperts: job.count, losses };
  const topK = { ...router, numChoices: job.topK };
  switch (job.gate) {
    case "switch":
      return switchGate(router) as Gate;
    case "noisy-top-k":
      return noisyTopKGate(topK) as Gate;
    case "sigmoid":
      return sigmoidGate(topK) as Gate;
    case "cosine":
      return cosineGate(topK) as Gate;
    case "expert-choice":
      return expertChoiceGate({ ...router, meanChoices: job.topK }) as Gate;
    case "balancing-bias":
      return balancingBiasGate(topK) as Gate;
    case "soft":
      return softGate({ width, numExperts: job.count }) as Gate;
    case "sinkhorn":
      return sinkhornGate(topK) as Gate;
  }
};

const buildDispatcher = (dispatch: SettledExperts["dispatch"], mesh: MeshJob): TokenDispatcher => {
  const axes = expertLevelAxes(mesh);
  switch (dispatch) {
    case "dense":
      return denseDispatcher();
    case "ragged":
      return raggedDispatcher();
    case "hierarchical":
      return hierarchicalDispatcher({ axes });
    case "duplicate-free":
      return duplicateFreeDispatcher({ axes });
  }
};

/** How much room each expert has. */
export const capacityOf = ({ capacity, dropOrder }: Pick<ExpertsJob, "capacity" | "dropOrder">): CapacityRule =>
  capacity === "all" ? capacityByMaximum() : capacityByFactor({ factor: capacity, dropOrder: dropOrders[dropOrder] });

/**
 * What one expert computes, as wide as a token's flops allow: in `topK` of them together as much is computed as in a
 * feed-forward part of the dense model.
 *
 * @param width of a token.
 */
export const buildExpert = (
  job: Pick<ExpertsJob, "activation" | "hidden" | "topK">,
  width: number,
): Experts<unknown> => {
  const isGelu = job.activation === "gelu";
  const hidden = job.hidden ?? Math.ceil((isGelu ? 4 : 8 / 3) * (width / job.topK));
  return (isGelu ? geluExperts({ width, hidden }) : swigluExperts({ width, hidden })) as Experts<unknown>;
};

/**
 * The experts of a GPT.
 *
 * @param width of a token.
 */
export const buildExperts = (job: SettledExperts, width: number, mesh: MeshJob): GptExperts => {
  const { count, every, normalisation } = job;
  const experts = buildExpert(job, width);
  const layer = moeLayer<unknown, unknown, unknown, unknown>({
    gate: buildGate(job, width),
    experts,
    ...(job.shared && { shared: experts }),
    capacity: capacityOf(job),
    normalisation,
    dispatcher: buildDispatcher(job.dispatch, mesh),
    chunks: job.chunks,
    ...(job.backwardChunks !== undefined && { backwardChunks: job.backwardChunks }),
    axis: expertAxis,
    tokenAxes: [mesh.tensor > 1 ? worldAxis : dataAxis], // with both, each rank has positions of its own
    ...(job.placement !== undefined && { loadDecay: job.placement.loadDecay }),
  });
  return {
    layer,
    every,
    // Of a layer's parameters those of its experts are stacked; the gate and a shared expert are on all ranks.
    sharding: (path) => (path.startsWith("experts.") && count > 1 ? { axis: expertAxis, dim: 0 } : undefined),
  };
};
