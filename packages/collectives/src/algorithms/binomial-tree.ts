import type { MessageRound } from "../cost.ts";
import { type CostPlace, type ElementRange, modulo, type Place, type Step } from "../schedule.ts";
import { splitLevels } from "./halves.ts";

/** Ranks as a tree sees them: by their distance from the root. */
export interface Positions {
  readonly position: number;
  readonly rankAt: (position: number) => number;
}

export const positionsOf = ({ rank, worldSize, root = 0 }: Omit<Place, "elementCount">): Positions => ({
  position: modulo(rank - root, worldSize),
  rankAt: (position) => modulo(position + root, worldSize),
});

/** Whom a position has to do with at one level of a tree; nobody where it has its turn at other levels. */
export interface Branch {
  /** Towards the root. */
  readonly parent?: number;
  readonly child?: number;
}

/**
 * Level `k` of the tree that doubles away from the root: the 2^k positions nearest to it have one child each, 2^k
 * further away. Level by level it spreads a value, and from the last level to the first it brings values in.
 */
export const doublingBranch = (position: number, worldSize: number, k: number): Branch => {
  const distance = 2 ** k;
  if (position >= 2 * distance) return {};
  if (position >= distance) return { parent: position - distance };
  return position + distance < worldSize ? { child: position + distance } : {};
};

/** A branch with all that hangs on it: the positions from the child on. */
export interface BlockBranch extends Branch {
  readonly first: number;
  readonly count: number;
}

/**
 * Level `k` of the tree in which what hangs on a position follows it: the child is half as far away as at the level
 * before, and stands for as many positions. Level by level it deals out blocks, and backwards it gathers them.
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
 * Rounds that gather blocks at the root, one of each position, by `halvingBranch` backwards: a block that has come goes
 * on with those before it.
 *
 * @param blocks where so many blocks from position `first` on lie, of those that hang on this position.
 */
export const gatherRounds = (
  place: Omit<Place, "elementCount">,
  blocks: (first: number, count: number) => ElementRange,
): Step[][] => {
  const { worldSize } = place;
  const { position, rankAt } = positionsOf(place);
  return Array.from({ length: splitLevels(worldSize) }, (_, level): Step[] => {
    const { parent, child, first, count } = halvingBranch(position, worldSize, level);
    if (parent !== undefined) return [{ action: "send", peer: rankAt(parent), source: blocks(first, count) }];
    if (child === undefined) return [];
    return [{ action: "receive", combine: "replace", peer: rankAt(child), target: blocks(first, count) }];
  }).toReversed();
};

/** What is sent in these rounds. @param bytes of one block. @param summed the root reads them for a sum. */
export const gatherMessages = (place: CostPlace, bytes: number, summed = false): MessageRound[] =>
  Array.from(
    { length: splitLevels(place.worldSize) },
    (_, level): MessageRound => ({
      sends: (rank) => {
        const { position, rankAt } = positionsOf({ ...place, rank });
        const { parent, count } = halvingBranch(position, place.worldSize, level);
        return parent === undefined
          ? []
          : [{ peer: rankAt(parent), bytes: count * bytes, summed: summed && parent === 0 }];
      },
    }),
  ).toReversed();
