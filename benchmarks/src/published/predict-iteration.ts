import {
  collectiveSeconds,
  type CollectiveModel,
  type GradientProfile,
  mebibytes,
  onePerTensor,
  timelineOf,
} from "@skein/cost-model";
import { planMgWfbp, planByteScheduler, priorityTimeline } from "@skein/cost-model/planners";
import type { BucketPlan } from "@skein/tensor-core";
import { profileOf } from "./architectures.ts";
import { type Cluster, negotiatedModel, ringModel, serverModel, type Place } from "./cluster.ts";
import { type Method, type ModelName, type Network, singleGpu } from "./seven-methods.ts";

/** Run to predict: a cell of the table, or one that was not measured. */
export interface Run {
  readonly model: ModelName;
  readonly method: Method;
  readonly network: Network;
  readonly worldSize: number;
}

/** Total seconds of an iteration on one GPU. */
export const singleSeconds = (model: ModelName): number => singleGpu[model].batch / singleGpu[model].samplesPerSecond;

/**
 * The network that parameter servers used. For ResNet-50 and BERT-Large, the table's rows BSP-PS and WFBP-PS have the
 * same values over 100 Gbit/s Ethernet as over 10 Gbit/s, to 2 % in all eight pairs, and half the speed that BERT-Base
 * and ByteScheduler reach over the faster network; these rows are therefore taken for runs over the slower network.
 */
const serverNetworkOf = ({ model, method, network }: Run): Network =>
  network === "100GbE" && model !== "BERT-Base" && method !== "ByteScheduler-PS" ? "10GbE" : network;

/** Piece size of ByteScheduler: its default. */
const partitionBytes = [mebibytes(4)];

/** After the backward pass GPUs are idle, so the remaining communication runs at full speed. */
const overlapped = (
  profile: GradientProfile,
  plan: BucketPlan,
  during: CollectiveModel,
  after: CollectiveModel,
): number => {
  const { collectives, backwardEndSeconds } = timelineOf(profile, plan, during);
  return collectives.reduce((seconds, { startSeconds, endSeconds, bytes }) => {
    const left = Math.min(1, Math.max(0, endSeconds - backwardEndSeconds) / (endSeconds - startSeconds));
    return seconds + left * collectiveSeconds(after, bytes);
  }, 0);
};

/** Number of rounds in which the share of computing converges to 1 %. */
const rounds = 4;

/**
 * Computing and communication overlap during the whole iteration, so PCIe lanes are slowed by the part of an iteration
 * in which GPUs compute.
 */
const scheduled = (
  profile: GradientProfile,
  alone: number,
  priceOf: (computing: number) => CollectiveModel,
): number => {
  let seconds = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const price = priceOf(alone / seconds);
    const next = priorityTimeline(
      profile,
      planByteScheduler(profile, price, { partitionBytes }),
      price,
    ).iterationSeconds;
    // A longer estimate of the iteration means less slowdown of PCIe, and so a shorter next estimate. The mean of both
    // does not oscillate.
    seconds = round === 0 ? next : (seconds + next) / 2;
  }
  return seconds;
};

/**
 * Predicts seconds of an iteration: the time of one GPU, plus the communication that is added to it.
 *
 * BSP: all communication, after the backward pass. WFBP and MG-WFBP: the part that `timelineOf` leaves exposed, per
 * tensor or merged by `planMgWfbp`, as the published code does. ByteScheduler: `planByteScheduler`, whose forward pass
 * waits only for its own tensors.
 */
export const predictIteration = (cluster: Cluster, run: Run): number => {
  const { model, method, worldSize } = run;
  const alone = singleSeconds(model);
  const backward = cluster.backwardShare * alone;
  const profile = profileOf(model, backward, alone - backward);
  const byServers = method.endsWith("PS");
  const placeOf = (computing: number): Place => ({
    network: byServers ? serverNetworkOf(run) : run.network,
    worldSize,
    computing,
  });
  const priceOf = (computing: number) => (byServers ? serverModel : ringModel)(cluster, placeOf(computing));
  switch (method) {
    case "BSP-A2A":
    case "BSP-PS": {
      const bytes = profile.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
      return alone + collectiveSeconds(priceOf(0), bytes);
    }
    case "WFBP-A2A":
    case "WFBP-PS":
      return alone + overlapped(profile, onePerTensor(profile), priceOf(1), priceOf(0));
    case "MG-WFBP":
      return alone + overlapped(profile, planMgWfbp(profile, priceOf(1)), priceOf(1), priceOf(0));
    case "ByteScheduler-A2A": {
      const { images, text } = cluster.negotiationSeconds;
      const negotiation = model === "ResNet-50" ? images : text;
      return scheduled(profile, alone, (computing) => negotiatedModel(cluster, placeOf(computing), negotiation));
    }
    case "ByteScheduler-PS":
      return scheduled(profile, alone, priceOf);
  }
};
