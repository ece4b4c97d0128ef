import { grownSecondsPerByte } from "@skein/cost-model/calibration";
import type { LinearCollectiveModel, PiecewiseCollectiveModel } from "@skein/cost-model";
import type { Network } from "./seven-methods.ts";

/** GPUs per node. They share the node's PCIe lanes, and traffic to other nodes shares the node's one network card. */
export const gpusPerNode = 4;

/** Costs of a network between nodes. */
export interface ClusterNetwork {
  /** Seconds of one step of a ring all-reduce, α. */
  readonly ringStepSeconds: number;
  /**
   * Seconds per byte of the card, in one direction. 0 if the PCIe lanes of a node are slower, so that the rate of the
   * card cannot be measured.
   */
  readonly ringSecondsPerByte: number;
  /**
   * Added share of `ringSecondsPerByte` for each doubling of the nodes; `ringSecondsPerByte` is the rate of two nodes.
   */
  readonly ringGrowthPerDoubling: number;
  /** Seconds per byte to the parameter servers, in one direction: M bytes there and back take 2 M times this value. */
  readonly serverSecondsPerByte: number;
}

/**
 * All parameters of predictions for a cluster. Published figures (batch, samples per second of one GPU, sizes of
 * models) are inputs in addition.
 */
export interface Cluster {
  /** Seconds per byte through the slowest PCIe link of a ring within a node, in one direction. */
  readonly nodeSecondsPerByte: number;
  readonly nodeRingStepSeconds: number;
  /** Factor by which the PCIe lanes are slower while GPUs compute. */
  readonly slowdownWhileComputing: number;
  /** Part of an iteration on one GPU during which gradients become ready. */
  readonly backwardShare: number;
  /**
   * Minimum time between two collectives of ByteScheduler, which ranks agree on one by one: of ResNet-50, and of both
   * BERTs. Why the two differ is unknown.
   */
  readonly negotiationSeconds: { readonly images: number; readonly text: number };
  /** Start-up of one tensor pushed to its server and pulled back. */
  readonly serverStartSeconds: number;
  readonly networks: Readonly<Record<Network, ClusterNetwork>>;
}

/** The network, number of ranks and load of a collective. */
export interface Place {
  readonly network: Network;
  readonly worldSize: number;
  /** Part of the time during which GPUs compute: 1 in the backward pass of WFBP, 0 after the pass. */
  readonly computing: number;
}

/** Seconds per byte of a PCIe link that is slower for part of the time: the mean of its rates, weighted by time. */
const withinNode = ({ nodeSecondsPerByte, slowdownWhileComputing }: Cluster, computing: number): number =>
  nodeSecondsPerByte / (computing / slowdownWhileComputing + 1 - computing);

/**
 * Cost model of a ring all-reduce over nodes of GPUs: 2 (P − 1) steps, and 2 (P − 1) / P · M bytes through the slowest
 * link, which is a PCIe link of a node or its network card. A ring crosses a card once in each direction, for any
 * number of GPUs per node. The card's seconds per byte may grow with every doubling of the nodes.
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
 * Ring model for collectives that never follow each other faster than ranks agree on them: max(negotiation, a + b · M).
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
 * Cost model of parameter servers, one per node: a ring within the node, then the transfer to the servers and back.
 * Tensors follow one another in pieces, so the slower of both parts counts. Each of S servers receives and sends a
 * share M / S of S nodes: 2 S · (M / S) · β = 2 M β, for any number of nodes.
 */
export const serverModel = (cluster: Cluster, { network, worldSize, computing }: Place): LinearCollectiveModel => {
  const within = ((2 * (gpusPerNode - 1)) / gpusPerNode) * withinNode(cluster, computing);
  const beyond = worldSize <= gpusPerNode ? 0 : 2 * cluster.networks[network].serverSecondsPerByte;
  return { startupSeconds: cluster.serverStartSeconds, secondsPerByte: Math.max(within, beyond) };
};
