/**
 * A group of ranks that is split into two parts: ranks `first` to `middle` − 1, and ranks `middle` to `end` − 1. If the
 * group size is odd, the lower part has one rank more.
 */
export interface Split {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
}

/** Returns the split of each group that contains `rank`, from the group of all ranks down to a pair. */
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

/** Peers of a rank in a split group. */
export interface Halves {
  /** Part of the group that contains the rank: ranks `from` to `to` − 1. */
  readonly own: readonly [from: number, to: number];
  /** Part of the group that does not contain the rank: ranks `from` to `to` − 1. */
  readonly other: readonly [from: number, to: number];
  /** Rank in the other part that receives this rank's data for the other part. */
  readonly partner: number;
  /** Ranks in the other part whose partner is this rank: usually one rank, but two or none if the part sizes differ. */
  readonly partners: readonly number[];
}

/**
 * Returns the parts and partners of a rank. The ranks of the two parts are paired in ascending order. If the lower part
 * has one rank more, its last two ranks share one partner, and the last rank is not a partner of any rank.
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
 * Returns the number of splits until every group is a single rank: ⌈log₂P⌉. The sizes of groups at one level differ by
 * at most one.
 */
export const splitLevels = (worldSize: number): number => Math.ceil(Math.log2(worldSize));
