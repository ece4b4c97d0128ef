import { ArgumentError } from "@skein/tensor-core";
import { checkExpertPlacement, type ExpertPlacement } from "./expert-placement.ts";
import { expertsOfRank, rankOfSlot, slotOfExpert } from "./placement-lookups.ts";

// Planners use the expert of each slot; a layer uses the position (slot) of each expert. Without replicas, these are
// inverse permutations. Only this file converts between them.

/**
 * Inverts positions: returns the expert at each position.
 *
 * @param positionOf position of each expert.
 * @throws ArgumentError unless all experts have different positions.
 */
export const expertsByPosition = (positionOf: readonly number[], numExperts: number): readonly number[] => {
  const experts = new Array<number>(numExperts).fill(-1);
  positionOf.forEach((position, expert) => {
    if (Object.hasOwn(experts, position)) experts[position] = expert;
  });
  if (positionOf.length !== numExperts || experts.includes(-1))
    throw new ArgumentError(
      `moeLayer: placement [${positionOf.join(", ")}] is not a permutation of ${numExperts} positions; give each expert its own position, 0 to ${numExperts - 1}`,
    );
  return experts;
};

/**
 * Converts a layer's positions to a placement for planners.
 *
 * @param positionOf position of each expert, such as `placeOf_E` of a layer's state.
 * @throws ArgumentError unless all experts have different positions, and experts are divisible by ranks.
 * @example
 * ```ts
 * // Expert 0 is at position 2, on rank 1.
 * console.log(placementFromPositions([2, 1, 0, 3], 2).expertOfSlot); // [2, 1, 0, 3]
 * ```
 */
export const placementFromPositions = (positionOf: readonly number[], numRanks: number): ExpertPlacement => {
  const placement = {
    numExperts: positionOf.length,
    numRanks,
    expertOfSlot: expertsByPosition(positionOf, positionOf.length),
  };
  checkExpertPlacement(placement);
  return placement;
};

/**
 * Converts a placement to the position of each expert, for a layer.
 *
 * @throws ArgumentError if the placement is invalid or has replicas, because a layer has each expert once.
 */
export const positionsOfPlacement = (placement: ExpertPlacement): readonly number[] => {
  checkExpertPlacement(placement);
  const { numExperts, expertOfSlot } = placement;
  if (expertOfSlot.length !== numExperts)
    throw new ArgumentError(
      `expert placement: ${expertOfSlot.length} slots for ${numExperts} experts, so some have replicas; a layer holds each expert once, use ${numExperts} slots`,
    );
  return slotOfExpert(placement);
};

/**
 * Returns the positions for a placement that differ least from the current positions. An expert that stays on its rank
 * also stays at its position, so that nothing is copied within a rank.
 *
 * @param before current positions.
 * @param after placement of the same experts on the same ranks, without replicas.
 * @throws ArgumentError if the positions or the placement are invalid, or have different experts.
 * @example
 * ```ts
 * const after = placementFromPositions([2, 1, 0, 3], 2);
 * console.log(nearestPositions([0, 1, 2, 3], after)); // [2, 1, 0, 3]
 * ```
 */
export const nearestPositions = (before: readonly number[], after: ExpertPlacement): readonly number[] => {
  const targets = positionsOfPlacement(after);
  const { numExperts, numRanks } = placementFromPositions(before, after.numRanks);
  if (numExperts !== after.numExperts)
    throw new ArgumentError(
      `expert placement: positions of ${numExperts} experts, but a placement of ${after.numExperts}; both must be of the same experts`,
    );
  const each = numExperts / numRanks;
  const rankOf = (position: number): number => Math.floor(position / each);
  const positions = before.map((position, expert) => (rankOf(position) === rankOf(targets[expert]!) ? position : -1));
  const isTaken = new Set(positions);
  const free = Array.from({ length: numRanks }, (_, rank) =>
    Array.from({ length: each }, (__, i) => rank * each + i).filter((position) => !isTaken.has(position)),
  );
  return positions.map((position, expert) => (position >= 0 ? position : free[rankOf(targets[expert]!)]!.shift()!));
};

/**
 * Permutes the ranks of a placement so that few experts move. Greedy: the expert group and the rank with the most
 * common experts are matched first; among equal matches, the first match. Use it only if all ranks are equally far
 * apart, because loads and messages then only move to other ranks.
 *
 * Cost: O(P² · log P + E).
 * @throws ArgumentError if a placement has replicas, or the placements have different experts or ranks.
 * @example
 * ```ts
 * const [before, after] = [placementFromPositions([0, 1, 2, 3], 2), placementFromPositions([2, 3, 0, 1], 2)];
 * console.log(expertMoves(before, permuteToNearestRanks(before, after))); // []
 * ```
 */
export const permuteToNearestRanks = (before: ExpertPlacement, after: ExpertPlacement): ExpertPlacement => {
  const { numExperts, numRanks } = after;
  const positions = positionsOfPlacement(before);
  positionsOfPlacement(after);
  if (before.numExperts !== numExperts || before.numRanks !== numRanks)
    throw new ArgumentError(
      `expert placement: ${before.numExperts} experts on ${before.numRanks} ranks before, ${numExperts} on ${numRanks} after; both must be of the same experts and ranks`,
    );
  const groups = Array.from({ length: numRanks }, (_, rank) => expertsOfRank(after, rank));
  const common = groups.flatMap((experts, group) => {
    const counts = new Array<number>(numRanks).fill(0);
    for (const expert of experts) counts[rankOfSlot(before, positions[expert]!)]! += 1;
    return counts.map((count, rank) => ({ group, rank, count }));
  });
  const groupOfRank = new Array<number>(numRanks).fill(-1);
  const isAssigned = new Set<number>();
  for (const { group, rank } of common.sort((a, b) => b.count - a.count || a.group - b.group || a.rank - b.rank))
    if (groupOfRank[rank] === -1 && !isAssigned.has(group)) {
      groupOfRank[rank] = group;
      isAssigned.add(group);
    }
  return { ...after, expertOfSlot: groupOfRank.flatMap((group) => groups[group]!) };
};
