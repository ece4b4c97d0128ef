import {
  buildShards,
  dataAxis,
  expertAxis,
  expertLevelAxes,
  type ExpertsJob,
  hiddenOf,
  type MeshJob,
  tensorAxis,
  worldAxis,
} from "@skein/job/node";
import type { GptExperts } from "@skein/models";
import {
  balanceLoss,
  balancingBiasGate,
  byBatchPriority,
  byRandomOrder,
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
import type { SettledExperts } from "../plans/experts-plan.ts";

const dropOrders: Readonly<Record<ExpertsJob["dropOrder"], DropOrder>> = {
  token: byToken,
  choice: byChoice,
  probability: byProbability,
  "batch-priority": byBatchPriority,
  chance: byRandomOrder,
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

/**
 * Builds a token dispatcher.
 * @param axes mesh axes of the ranks that exchange tokens, outermost axis first.
 */
const buildDispatcher = (dispatch: SettledExperts["dispatch"], axes: readonly string[]): TokenDispatcher => {
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

/** Returns the rule that determines the capacity of each expert, in tokens. */
export const capacityOf = ({ capacity, dropOrder }: Pick<ExpertsJob, "capacity" | "dropOrder">): CapacityRule =>
  capacity === "all" ? capacityByMaximum() : capacityByFactor({ factor: capacity, dropOrder: dropOrders[dropOrder] });

/**
 * Builds the feed-forward network of the experts.
 * @param width number of features per token.
 */
export const buildExpert = (
  job: Pick<ExpertsJob, "activation" | "hidden" | "topK">,
  width: number,
): Experts<unknown> => {
  const sizes = { width, hidden: hiddenOf(job, width) };
  return (job.activation === "gelu" ? geluExperts(sizes) : swigluExperts(sizes)) as Experts<unknown>;
};

/**
 * Builds the experts of a GPT.
 * @param width number of features per token.
 */
export const buildExperts = (job: SettledExperts, width: number, mesh: MeshJob): GptExperts => {
  const { every, normalisation } = job;
  const experts = buildExpert(job, width);
  const shards = buildShards(job, mesh);
  const levels = [...expertLevelAxes(mesh), ...(shards?.gates === "own" ? [tensorAxis] : [])];
  const hasOwnTokens = mesh.tensor > 1 && shards?.gates !== "same";
  const layer = moeLayer<unknown, unknown, unknown, unknown>({
    gate: buildGate(job, width),
    experts,
    ...(job.shared && { shared: experts }),
    capacity: capacityOf(job),
    normalisation,
    // With split-after-gate, the shards themselves send the token slots.
    ...(job.shards !== "split-after-gate" && { dispatcher: buildDispatcher(job.dispatch, levels) }),
    ...(shards && { shards }),
    chunks: job.chunks,
    ...(job.backwardChunks !== undefined && { backwardChunks: job.backwardChunks }),
    axis: expertAxis,
    tokenAxes: [hasOwnTokens ? worldAxis : dataAxis],
    ...(job.placement !== undefined && { loadDecay: job.placement.loadDecay }),
  });
  return {
    layer,
    every,
    sharding: layer.sharding,
    ...(shards?.gates === "same" && { positions: "all" }),
  };
};
