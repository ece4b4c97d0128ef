import type { MessageRound } from "../cost.ts";
import { type CostParameters, type ElementRange, modulo, type ScheduleParameters, type Step } from "../schedule.ts";
import { splitLevels } from "./halves.ts";

/** Position of this rank in a tree (its distance from the root, modulo P), and the mapping from positions to ranks. */
export interface Positions {
  readonly position: number;
  readonly rankAt: (position: number) => number;
}

export const positionsOf = ({ rank, worldSize, root = 0 }: Omit<ScheduleParameters, "elementCount">): Positions => ({
  position: modulo(rank - root, worldSize),
  rankAt: (position) => modulo(position + root, worldSize),
});

/** Parent or child of a position at one level of a tree. The position is idle at this level if both are absent. */
export interface Branch {
  /** Position of the parent. Absent: the position has no parent at this level. */
  readonly parent?: number;
  readonly child?: number;
}

/**
 * Returns the branch of a position at level `k` of a binomial tree. Each of the 2^k positions nearest to the root has
 * one child at distance 2^k, so the number of reached positions doubles at each level. In ascending order the levels
 * broadcast a value; in descending order they reduce values.
 */
export const doublingBranch = (position: number, worldSize: number, k: number): Branch => {
  const distance = 2 ** k;
  if (position >= 2 * distance) return {};
  if (position >= distance) return { parent: position - distance };
  return position + distance < worldSize ? { child: position + distance } : {};
};

/** A branch and the positions of its child's subtree: `count` positions beginning at `first`. */
export interface BlockBranch extends Branch {
  readonly first: number;
  readonly count: number;
}

/**
 * Returns the branch at level `k` of a tree with contiguous subtrees. The distance to a child is half the distance at
 * the previous level. The distance to a child equals the number of positions in the child's subtree. In ascending order
 * the levels scatter blocks; in descending order they gather blocks.
 */
export const halvingBranch = (position: number, worldSize: number, k: number): BlockBranch => {
  const distance = 2 ** (splitLevels(worldSize) - 1 - k);
  const isChild = position % (2 * distance) === distance;
  const first = isChild ? position : position + distance;
  const branch = { first, count: Math.min(distance, worldSize - first) };
  if (isChild) return { ...branch, parent: position - distance };
  return position % (2 * distance) === 0 && first < worldSize ? { ...branch, child: first } : branch;
};

/**
 * Returns the rounds that gather one block per position at the root, along the branches of `halvingBranch` in
 * descending order. A received block is forwarded together with the blocks of lower positions.
 *
 * @param blocks returns the element range of `count` blocks. The blocks begin at position `first`, in the subtree of
 * this rank's position.
 */
export const gatherRounds = (
  parameters: Omit<ScheduleParameters, "elementCount">,
  blocks: (first: number, count: number) => ElementRange,
): Step[][] => {
  const { worldSize } = parameters;
  const { position, rankAt } = positionsOf(parameters);
  return Array.from({ length: splitLevels(worldSize) }, (_, level): Step[] => {
    const { parent, child, first, count } = halvingBranch(position, worldSize, level);
    if (parent !== undefined) return [{ action: "send", peer: rankAt(parent), source: blocks(first, count) }];
    if (child === undefined) return [];
    return [{ action: "receive", combine: "replace", peer: rankAt(child), target: blocks(first, count) }];
  }).toReversed();
};

/**
 * Returns the messages of each round of `gatherRounds`, for a cost formula.
 *
 * @param bytes size of one block.
 * @param summed whether the root reads the blocks as operands of a sum.
 */
export const gatherMessages = (parameters: CostParameters, bytes: number, summed = false): MessageRound[] =>
  Array.from(
    { length: splitLevels(parameters.worldSize) },
    (_, level): MessageRound => ({
      sends: (rank) => {
        const { position, rankAt } = positionsOf({ ...parameters, rank });
        const { parent, count } = halvingBranch(position, parameters.worldSize, level);
        return parent === undefined
          ? []
          : [{ peer: rankAt(parent), bytes: count * bytes, summed: summed && parent === 0 }];
      },
    }),
  ).toReversed();
