/**
 * Ranks `first` to `middle` − 1 and `middle` to `end` − 1: a group cut in two, the lower part larger by one where it is
 * odd.
 */
export interface Split {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
}

/** The groups that `rank` is in, from all ranks down to pairs. */
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

/** Who `rank` works with in a group. */
export interface Halves {
  /** Own part and the other one, as ranks from … to − 1. */
  readonly own: readonly [from: number, to: number];
  readonly other: readonly [from: number, to: number];
  /** The rank of the other part that takes what this one has of it. */
  readonly partner: number;
  /** Ranks of the other part whose partner this one is: one as a rule, two or none where the parts are unequal. */
  readonly partners: readonly number[];
}

/**
 * Pair the two parts of a group rank by rank. Where the lower part has one more, its last rank has the same partner as
 * the one before, and is nobody's partner.
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

/** Levels of splitting until every group is one rank: ⌈log₂P⌉. Groups of one level differ by one rank at most. */
export const splitLevels = (worldSize: number): number => Math.ceil(Math.log2(worldSize));
