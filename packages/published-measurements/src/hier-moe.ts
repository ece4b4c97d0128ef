/** Published linear fit of all-to-all times: start-up time, and time per byte that a rank sends. */
interface PublishedAllToAll {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** Creates a fit from values that are printed in milliseconds. */
const line = (startup: number, perByte: number): PublishedAllToAll => ({
  startupSeconds: startup * 1e-3,
  secondsPerByte: perByte * 1e-3,
});

interface PublishedLevel {
  readonly groupsPerNode: number;
  readonly between: PublishedAllToAll;
  readonly within: PublishedAllToAll;
}

interface Testbed {
  readonly numNodes: number;
  readonly gpusPerNode: number;
  readonly flat: PublishedAllToAll;
  /**
   * Levels of GPU groups, outermost first. The groups are nodes (connected by InfiniBand), the two sockets of a node,
   * and pairs of GPUs (connected by NVLink).
   */
  readonly levels: readonly [PublishedLevel, PublishedLevel, PublishedLevel];
}

/**
 * Fits of all-to-alls on 4 nodes of 8 RTX A6000 over 200 Gbit/s. `flat` is the fit of an all-to-all over all 32 GPUs in
 * one step. The other fits are listed per level, outermost first: between the groups of the level, and within a group.
 *
 * Source: arXiv 2508.09591 (HierMoE), figure 9.
 */
export const hierMoeTestbed: Testbed = {
  numNodes: 4,
  gpusPerNode: 8,
  flat: line(7.22e-1, 5.7e-7),
  levels: [
    { groupsPerNode: 1, between: line(4.97e-1, 5.29e-7), within: line(5.71e-1, 1.27e-7) },
    { groupsPerNode: 2, between: line(3.01e-1, 1.17e-7), within: line(1.14e-1, 2.63e-8) },
    { groupsPerNode: 4, between: line(1.49e-1, 2.06e-8), within: line(2.04e-1, 1.64e-8) },
  ],
};

/**
 * Percentage of token copies that are avoided by sending each token to a group only once. Depends on the number of
 * groups and on K, the number of experts per token.
 */
interface DuplicationRow {
  readonly numGroups: number;
  readonly percent: Readonly<Record<2 | 4 | 6 | 8, number>>;
}

/**
 * Published duplication rates. The paper does not give the number of experts. Source: arXiv 2508.09591 (HierMoE), table
 * of duplication rates.
 */
export const hierMoeDuplication: readonly DuplicationRow[] = [
  { numGroups: 32, percent: { 2: 2, 4: 4, 6: 7, 8: 9 } },
  { numGroups: 16, percent: { 2: 3, 4: 9, 6: 14, 8: 18 } },
  { numGroups: 8, percent: { 2: 6, 4: 17, 6: 27, 8: 34 } },
  { numGroups: 4, percent: { 2: 12, 4: 32, 6: 46, 8: 55 } },
];

/**
 * Speedups of all-to-alls compared with Megatron-LM, for one choice of expert count, experts per token and rank count.
 */
export interface HierMoeSpeedups {
  readonly expertsPerToken: number;
  readonly numExperts: number;
  readonly numRanks: number;
  /** HD2: speedup of the all-to-all in two steps, between nodes and within a node. */
  readonly twoSteps: number;
  /** HD: speedup of the all-to-all with the best number of steps. */
  readonly bestDepth: number;
  /** HierMoE: speedup with the best number of steps, and with experts moved between ranks. */
  readonly experts: number;
}

/**
 * Published speedups of all-to-alls for Qwen3-30B-A3B with 1024 tokens per GPU. The columns for K = 10, 256 experts and
 * 16 GPUs are left out on purpose: they are reserved for a test of predictions.
 *
 * Source: arXiv 2508.09591 (HierMoE), table IV.
 */
export const hierMoeSpeedups: readonly HierMoeSpeedups[] = [
  { expertsPerToken: 6, numExperts: 128, numRanks: 32, twoSteps: 0.95, bestDepth: 1.37, experts: 1.56 },
  { expertsPerToken: 8, numExperts: 128, numRanks: 32, twoSteps: 1.26, bestDepth: 1.72, experts: 1.99 },
  { expertsPerToken: 8, numExperts: 64, numRanks: 32, twoSteps: 1.12, bestDepth: 1.57, experts: 1.83 },
  { expertsPerToken: 8, numExperts: 128, numRanks: 8, twoSteps: 1.24, bestDepth: 2.36, experts: 2.86 },
];

/** Size of one token of Qwen3-30B-A3B in bytes (2048 values of 2 bytes), and number of tokens per GPU. */
export const hierMoeTokens = { bytesPerToken: 4096, tokensPerRank: 1024 } as const;
