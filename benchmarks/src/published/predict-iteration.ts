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

/** Run to predict: a cell of the table, or an unmeasured run. */
export interface Run {
  readonly model: ModelName;
  readonly method: Method;
  readonly network: Network;
  readonly worldSize: number;
}

/** Returns the seconds of an iteration on one GPU. */
export const singleSeconds = (model: ModelName): number => singleGpu[model].batch / singleGpu[model].samplesPerSecond;

/**
 * Returns the network that a run with parameter servers is assumed to use. For ResNet-50 and BERT-Large, the published
 * BSP-PS and WFBP-PS rates over 100 Gbit/s Ethernet differ by at most 2 % from the rates over 10 Gbit/s, in all eight
 * pairs. BERT-Base and ByteScheduler are twice as fast over the faster network. These BSP-PS and WFBP-PS rates are
 * therefore treated as measured over 10 Gbit/s.
 */
const serverNetworkOf = ({ model, method, network }: Run): Network =>
  network === "100GbE" && model !== "BERT-Base" && method !== "ByteScheduler-PS" ? "10GbE" : network;

/** Partition size of ByteScheduler, its default. */
const partitionBytes = [mebibytes(4)];

/**
 * Predicts the time in seconds of an iteration in which communication overlaps the backward pass. After the backward
 * pass GPUs are idle, so the remaining communication runs at full speed.
 */
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

/** Number of rounds until the share of compute time has converged to 1 %. */
const rounds = 4;

/**
 * Predicts the time in seconds of an iteration in which messages are sent by priority. Compute and communication
 * overlap during the whole iteration, so PCIe is slowed down for the fraction of the iteration in which GPUs compute.
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
    // estimates does not oscillate.
    seconds = round === 0 ? next : (seconds + next) / 2;
  }
  return seconds;
};

/**
 * Predicts seconds of an iteration: compute time on one GPU plus exposed communication.
 *
 * BSP exposes all communication, because it starts after the backward pass. WFBP and MG-WFBP expose the part that
 * `timelineOf` leaves after the backward pass, with messages per tensor or merged by `planMgWfbp`, as in the published
 * code. ByteScheduler uses `planByteScheduler`, whose forward pass waits for each layer's tensors only.
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
