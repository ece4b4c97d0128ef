import { grownSecondsPerByte, type LinearCollectiveModel, type PiecewiseCollectiveModel } from "@skein/cost-model";
import type { Network } from "./seven-methods.ts";

/** GPUs of a node; they share its PCIe lanes, and what leaves the node shares its one network card. */
export const gpusPerNode = 4;

/** What a network beyond the node costs. */
export interface ClusterNetwork {
  /** One step of a ring of all-reduce: α. */
  readonly ringStepSeconds: number;
  /** Of the card, one way. 0 where the PCIe lanes of a node are slower, so that nobody can tell. */
  readonly ringSecondsPerByte: number;
  /** Added share of `ringSecondsPerByte`, which is that of two nodes, for each doubling of the nodes. */
  readonly ringGrowthPerDoubling: number;
  /** To the parameter servers and back, by the way there: 2 M of these for M bytes. */
  readonly serverSecondsPerByte: number;
}

/**
 * All that predictions of a cluster rest on. Published figures (batch, samples per second of one GPU, sizes of models)
 * come beside.
 */
export interface Cluster {
  /** One way through the slowest PCIe link of a ring within a node. */
  readonly nodeSecondsPerByte: number;
  readonly nodeRingStepSeconds: number;
  /** By how much the PCIe lanes are slower while GPUs compute. */
  readonly slowdownWhileComputing: number;
  /** Part of an iteration on one GPU during which gradients become ready. */
  readonly backwardShare: number;
  /**
   * Least time between two collectives of ByteScheduler, which ranks agree on one by one: of ResNet-50, and of both
   * BERTs. Why they differ is unknown.
   */
  readonly negotiationSeconds: { readonly images: number; readonly text: number };
  /** Of one tensor pushed to its server and pulled back. */
  readonly serverStartSeconds: number;
  readonly networks: Readonly<Record<Network, ClusterNetwork>>;
}

/** Where a collective runs. */
export interface Place {
  readonly network: Network;
  readonly worldSize: number;
  /** Part of the time during which GPUs compute: 1 in the backward pass of WFBP, 0 after it. */
  readonly computing: number;
}

/** A PCIe link that is slower for part of the time: the mean of its rates, by time. */
const withinNode = ({ nodeSecondsPerByte, slowdownWhileComputing }: Cluster, computing: number): number =>
  nodeSecondsPerByte / (computing / slowdownWhileComputing + 1 - computing);

/**
 * Price a ring of all-reduce over nodes of GPUs: 2 (P − 1) steps, and 2 (P − 1) / P · M bytes through the slowest link,
 * which is a PCIe link of a node or its network card. A ring crosses a card once each way, however many GPUs a node
 * has. The card's seconds per byte may grow with every doubling of the nodes.
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
 * The same where two collectives never follow each other faster than ranks agree on them: max(negotiation, a + b · M).
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
 * Price parameter servers, one a node: a ring within the node, then the way to the servers and back, tensors behind one
 * another in pieces, so that the slower of both counts. Each of S servers takes in and gives out a share M / S of S
 * nodes: 2 S · (M / S) · β = 2 M β, whatever the number of nodes.
 */
export const serverModel = (cluster: Cluster, { network, worldSize, computing }: Place): LinearCollectiveModel => {
  const within = ((2 * (gpusPerNode - 1)) / gpusPerNode) * withinNode(cluster, computing);
  const beyond = worldSize <= gpusPerNode ? 0 : 2 * cluster.networks[network].serverSecondsPerByte;
  return { startupSeconds: cluster.serverStartSeconds, secondsPerByte: Math.max(within, beyond) };
};
