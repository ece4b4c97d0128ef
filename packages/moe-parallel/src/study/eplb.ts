import { ArgumentError } from "@skein/tensor-core";
import { balancedPacks } from "../placement/balanced-packs.ts";
import type { ExpertPlacement } from "../placement/expert-placement.ts";
import { checkDivides, checkLoads } from "../placement/loads.ts";

/**
 * Assigns spare slots one by one to the expert with the largest load per replica. No other assignment has a smaller
 * maximum load per replica. Among equal experts, the expert with the fewest replicas gets the slot, then the first
 * expert. (EPLB chooses the first expert, and assigns all spare slots to expert 0 if all loads are 0.)
 *
 * @returns the expert of each of `numSlots` replicas: first one replica of each expert, then the spare slots in order
 *   of assignment.
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

/** Ranks, slots and groups for a placement by EPLB. */
export interface EplbPlacementOptions {
  readonly numRanks: number;
  /** Total number of slots on all ranks. Slots beyond one per expert contain replicas. */
  readonly numSlots: number;
  /** Number of hosts, with equal numbers of consecutive ranks. Default: 1. */
  readonly numHosts?: number;
  /**
   * Number of groups of consecutive experts. All replicas of a group's experts stay on one host, because a gate that
   * chooses groups first sends a token to few groups. Default: 1.
   */
  readonly numGroups?: number;
}

/**
 * Places experts and their replicas with EPLB so that ranks have nearly equal loads.
 *
 * If groups are divisible by hosts, the placement is hierarchical: groups are packed into hosts by load, the heaviest
 * experts of each host are replicated in the host's spare slots, and replicas are packed into the host's ranks.
 * Otherwise the placement is global, as with one host and one group. A rank may get two replicas of the same expert.
 *
 * Cost: O(slots · (experts + ranks)).
 *
 * @param loads load of each expert, such as tokens per step: finite, not negative.
 * @throws ArgumentError if a load is invalid, there are fewer slots than experts, or slots are not divisible by ranks,
 * ranks by hosts, or experts by groups.
 * @example
 * ```ts
 * // The spare slots hold replicas of the heaviest experts.
 * console.log(placeByEplb([4, 1, 3, 0], { numRanks: 2, numSlots: 6 }).expertOfSlot); // [0, 2, 1, 0, 2, 3]
 * ```
 * Source: DeepSeek's expert-parallel load balancer EPLB, https://github.com/deepseek-ai/EPLB.
 */
export const placeByEplb = (
  loads: readonly number[],
  { numRanks, numSlots, numHosts = 1, numGroups = 1 }: EplbPlacementOptions,
): ExpertPlacement => {
  const numExperts = loads.length;
  checkLoads("placeByEplb", loads);
  checkDivides("placeByEplb", [numSlots, "slots"], [numRanks, "ranks"]);
  checkDivides("placeByEplb", [numRanks, "ranks"], [numHosts, "hosts"]);
  checkDivides("placeByEplb", [numExperts, "experts"], [numGroups, "groups"]);
  if (numSlots < numExperts)
    throw new ArgumentError(
      `placeByEplb: ${numSlots} slots for ${numExperts} experts; every expert needs at least one slot, give more slots`,
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
