/**
 * A group split in two: ranks `first` to `middle` − 1 and `middle` to `end` − 1. If the size is odd, the lower part has
 * one rank more.
 */
export interface Split {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
}

/** Groups that contain `rank`, from all ranks down to pairs. */
export const splitsOf = (rank: number, worldSize: number): Split[] => {
  const splits: Split[] = [];
  let [first, end] = [0, worldSize];
  while (end - first > 1) {
    const middle = first + Math.ceil((end - first) / 2);
    splits.push({ first, middle, end });
    if (rank < middle) end = middle;
    else first = middle;
  }
  return splits;
};

/** Peers of `rank` in a split group. */
export interface Halves {
  /** The part that contains `rank` and the other part, as ranks from … to − 1. */
  readonly own: readonly [from: number, to: number];
  readonly other: readonly [from: number, to: number];
  /** Rank of the other part that receives this rank's data for the other part. */
  readonly partner: number;
  /** Ranks of the other part whose partner is this rank: usually one; two or none if the parts are unequal. */
  readonly partners: readonly number[];
}

/**
 * Pairs the two parts of a group rank by rank. If the lower part has one rank more, its last rank has the same partner
 * as the rank before, and is not a partner itself.
 */
export const halvesOf = (rank: number, { first, middle, end }: Split): Halves => {
  const pairs = end - middle;
  if (rank < middle) {
    const index = rank - first;
    return {
      own: [first, middle],
      other: [middle, end],
      partner: middle + Math.min(index, pairs - 1),
      partners: index < pairs ? [middle + index] : [],
    };
  }
  const index = rank - middle;
  return {
    own: [middle, end],
    other: [first, middle],
    partner: first + index,
    partners: index === pairs - 1 && middle - first > pairs ? [first + index, first + pairs] : [first + index],
  };
};

/**
 * Number of levels of splitting until every group is one rank: ⌈log₂P⌉. Groups of one level differ by at most one rank.
 */
export const splitLevels = (worldSize: number): number => Math.ceil(Math.log2(worldSize));
