import { grownSecondsPerByte } from "@skein/cost-model/calibration";
import type { LinearCollectiveModel, PiecewiseCollectiveModel } from "@skein/cost-model";
import type { Network } from "./seven-methods.ts";

/** Number of GPUs per node. All GPUs of a node share its PCIe lanes and its one network card. */
export const gpusPerNode = 4;

/** Cost parameters of the network between nodes, such as seconds per byte. */
export interface ClusterNetwork {
  /** Seconds per step of a ring all-reduce, α. */
  readonly ringStepSeconds: number;
  /**
   * Seconds per byte of the network card, in one direction. 0 if a node's PCIe lanes are slower, so that the card's
   * rate cannot be measured.
   */
  readonly ringSecondsPerByte: number;
  /**
   * Relative increase of the network card's seconds per byte per doubling of nodes, starting from `ringSecondsPerByte`
   * for two nodes.
   */
  readonly ringGrowthPerDoubling: number;
  /**
   * Seconds per byte to the parameter servers, in one direction. Pushing and pulling M bytes takes 2 M times this
   * value.
   */
  readonly serverSecondsPerByte: number;
}

/**
 * All fitted parameters of a cluster's performance model. Published figures (batch, samples per second on one GPU,
 * model sizes) are additional inputs.
 */
export interface Cluster {
  /** Seconds per byte through the slowest PCIe link of a ring within a node, in one direction. */
  readonly nodeSecondsPerByte: number;
  readonly nodeRingStepSeconds: number;
  /** Factor by which PCIe transfers take longer while GPUs compute. */
  readonly slowdownWhileComputing: number;
  /** Fraction of an iteration on one GPU during which gradients become ready. */
  readonly backwardShare: number;
  /**
   * Minimum seconds between two collectives of ByteScheduler, because ranks negotiate each collective. `images` is for
   * ResNet-50, `text` for both BERT models; the reason for the difference is unknown.
   */
  readonly negotiationSeconds: { readonly images: number; readonly text: number };
  /** Startup seconds to push one tensor to its server and pull it back. */
  readonly serverStartSeconds: number;
  readonly networks: Readonly<Record<Network, ClusterNetwork>>;
}

/** Conditions under which a collective runs: network, number of ranks, and compute load of the GPUs. */
export interface Place {
  readonly network: Network;
  readonly worldSize: number;
  /** Fraction of the collective's time during which GPUs compute: 1 during the backward pass of WFBP, 0 after it. */
  readonly computing: number;
}

/**
 * Returns the seconds per byte of a PCIe link that is slower while GPUs compute, from the time-weighted mean of both
 * rates.
 */
const withinNode = ({ nodeSecondsPerByte, slowdownWhileComputing }: Cluster, computing: number): number =>
  nodeSecondsPerByte / (computing / slowdownWhileComputing + 1 - computing);

/**
 * Returns the cost model of a ring all-reduce of M bytes over P GPUs: 2 (P − 1) steps, and 2 (P − 1) / P · M bytes
 * through the slowest link, which is a node's PCIe link or its network card. A ring uses a card once in each direction,
 * for any number of GPUs per node. The card's seconds per byte may grow with every doubling of nodes.
 */
export const ringModel = (cluster: Cluster, { network, worldSize, computing }: Place): LinearCollectiveModel => {
  const { ringStepSeconds, ringSecondsPerByte, ringGrowthPerDoubling } = cluster.networks[network];
  const growth = { numHosts: 2, sharePerDoubling: ringGrowthPerDoubling };
  const card = grownSecondsPerByte(ringSecondsPerByte, growth, worldSize / gpusPerNode);
  const within = withinNode(cluster, computing);
  const [step, perByte] =
    worldSize <= gpusPerNode ? [cluster.nodeRingStepSeconds, within] : [ringStepSeconds, Math.max(within, card)];
  return { startupSeconds: 2 * (worldSize - 1) * step, secondsPerByte: ((2 * (worldSize - 1)) / worldSize) * perByte };
};

/**
 * Returns the ring model for collectives that take at least the negotiation time of the ranks: max(negotiation, a + b ·
 * M) for M bytes.
 */
export const negotiatedModel = (
  cluster: Cluster,
  place: Place,
  negotiationSeconds: number,
): PiecewiseCollectiveModel => {
  const ring = ringModel(cluster, place);
  const from = (negotiationSeconds - ring.startupSeconds) / ring.secondsPerByte;
  const pieces = [{ fromBytes: Math.max(0, from), ...ring }];
  return {
    pieces: from > 0 ? [{ fromBytes: 0, startupSeconds: negotiationSeconds, secondsPerByte: 0 }, ...pieces] : pieces,
  };
};

/**
 * Returns the cost model of parameter servers for M bytes, with one server per node. Gradients are reduced by a ring
 * within the node, then sent to the servers and back. Tensors are divided and pipelined, so only the slower of the ring
 * and the server transfer counts. Each of S servers exchanges a share M / S with S nodes in both directions, so the
 * transfer takes 2 S · (M / S) · β = 2 M β for any number of nodes.
 */
export const serverModel = (cluster: Cluster, { network, worldSize, computing }: Place): LinearCollectiveModel => {
  const within = ((2 * (gpusPerNode - 1)) / gpusPerNode) * withinNode(cluster, computing);
  const beyond = worldSize <= gpusPerNode ? 0 : 2 * cluster.networks[network].serverSecondsPerByte;
  return { startupSeconds: cluster.serverStartSeconds, secondsPerByte: Math.max(within, beyond) };
};
