import { ArgumentError } from "@skein/tensor-core";
import { balancedPacks } from "./balanced-packs.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { checkDivides, checkLoads } from "./loads.ts";

/**
 * Give spare slots one at a time to the expert with the largest load per replica. No other numbers of replicas have a
 * smaller largest load per replica. Of equal experts the one with the fewest replicas, then the first: EPLB takes the
 * first, and gives all spare slots to expert 0 while nothing has a load.
 *
 * @returns the expert of each of `numSlots` replicas: first one of each expert, then the spare ones as they were given.
 */
const replicate = (loads: readonly number[], numSlots: number): { experts: number[]; numReplicas: number[] } => {
  const experts = loads.map((_, expert) => expert);
  const numReplicas = loads.map(() => 1);
  while (experts.length < numSlots) {
    let heaviest = 0;
    for (let expert = 1; expert < loads.length; expert++) {
      const more = loads[expert]! / numReplicas[expert]! - loads[heaviest]! / numReplicas[heaviest]!;
      if (more > 0 || (more === 0 && numReplicas[expert]! < numReplicas[heaviest]!)) heaviest = expert;
    }
    experts.push(heaviest);
    numReplicas[heaviest]! += 1;
  }
  return { experts, numReplicas };
};

/** The ranks and slots that experts and their replicas are dealt out to. */
export interface ReplicatedPlacementOptions {
  readonly numRanks: number;
  /** Slots of all ranks together; those beyond one for each expert hold replicas. */
  readonly numSlots: number;
  /** Hosts of equally many ranks, which follow one another. Default: 1. */
  readonly numHosts?: number;
  /**
   * Groups of experts that follow one another; a group stays on one host, with all its replicas, since a gate that
   * chooses groups first sends a token to few of them. Default: 1.
   */
  readonly numGroups?: number;
}

/**
 * Place experts with replicas so that ranks have nearly equal loads.
 *
 * Hierarchical, where groups divide over hosts: pack groups into hosts by load, replicate the heaviest experts of each
 * host in its own slots, and pack replicas into its ranks. Global otherwise: all hosts and groups count as one. Two
 * replicas of one expert may come to lie on one rank.
 *
 * Cost: O(slots · (experts + ranks)).
 *
 * @param loads of each expert, such as tokens per step: finite, not negative.
 * @throws ArgumentError for other loads, fewer slots than experts, and where slots do not divide over ranks, ranks over
 *   hosts or experts over groups.
 * @example placeReplicated(counts, { numRanks: 8, numSlots: 16, numHosts: 2, numGroups: 4 });
 *
 * Source: DeepSeek's expert-parallel load balancer EPLB, https://github.com/deepseek-ai/EPLB.
 */
export const placeReplicated = (
  loads: readonly number[],
  { numRanks, numSlots, numHosts = 1, numGroups = 1 }: ReplicatedPlacementOptions,
): ExpertPlacement => {
  const numExperts = loads.length;
  checkLoads("placeReplicated", loads);
  checkDivides("placeReplicated", [numSlots, "slots"], [numRanks, "ranks"]);
  checkDivides("placeReplicated", [numRanks, "ranks"], [numHosts, "hosts"]);
  checkDivides("placeReplicated", [numExperts, "experts"], [numGroups, "groups"]);
  if (numSlots < numExperts)
    throw new ArgumentError(
      `placeReplicated: ${numSlots} slots for ${numExperts} experts; every expert needs one, give more slots`,
    );
  const isHierarchical = numGroups % numHosts === 0;
  const [hosts, groups] = isHierarchical ? [numHosts, numGroups] : [1, 1];
  const groupSize = numExperts / groups;
  const groupLoads = Array.from({ length: groups }, (_, group) =>
    loads.slice(group * groupSize, (group + 1) * groupSize).reduce((sum, load) => sum + load, 0),
  );
  const expertOfSlot = balancedPacks(groupLoads, hosts).flatMap((ownGroups) => {
    const own = ownGroups.flatMap((group) => Array.from({ length: groupSize }, (_, i) => group * groupSize + i));
    const { experts, numReplicas } = replicate(
      own.map((expert) => loads[expert]!),
      numSlots / hosts,
    );
    const replicaLoads = experts.map((expert) => loads[own[expert]!]! / numReplicas[expert]!);
    return balancedPacks(replicaLoads, numRanks / hosts)
      .flat()
      .map((replica) => own[experts[replica]!]!);
  });
  return { numExperts, numRanks, expertOfSlot };
};
