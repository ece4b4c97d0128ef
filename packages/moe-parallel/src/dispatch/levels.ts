import { ArgumentError } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { checkCounts, checkPriority, tokenPriority } from "../options.ts";

/** How ranks of the axis of experts lie in groups of groups, such as hosts, sockets, pairs. */
export interface LevelOptions {
  /**
   * Axes of the mesh whose product is the axis of the experts, from the outermost (between hosts) to the innermost. The
   * mesh has them beside that axis, along which ranks are numbered row by row: the innermost runs fastest.
   */
  readonly axes: readonly string[];
  /**
   * Priority of the collectives along each axis, 0 to 3: those of one priority wait for each other, those of several
   * are under way at once, and the greatest goes first. Counts go with that of the axis that is taken first. Default: 3
   * for the outermost, which is the slowest, and one less for each further one, 1 at least; so the lane of gradients,
   * 0, is none of theirs.
   */
  readonly priorities?: readonly number[];
  /**
   * Most copies of tokens that one rank sends to another along each axis, of one chunk. Default: as many as there can
   * be, which costs memory where loads are even. A run that needs more fails with an `ArgumentError` that names the
   * rank and both counts.
   */
  readonly copiesPerRank?: readonly number[];
}

/** One axis of those that the ranks lie along. */
export interface Level {
  readonly axis: string;
  /** g: ranks along it. */
  readonly numGroups: number;
  /** From one rank along it to the next, in ranks of the axis of experts. */
  readonly stride: number;
  readonly priority: number;
  readonly copiesPerRank?: number;
}

/** @throws ArgumentError for options that fit no mesh. */
export const checkLevels = (dispatcher: string, { axes, priorities, copiesPerRank }: LevelOptions): void => {
  if (axes.length === 0 || new Set(axes).size !== axes.length)
    throw new ArgumentError(
      `${dispatcher}: its axes are [${axes.join(", ")}]; name each axis of the mesh that divides the experts' once, from the outermost`,
    );
  for (const [name, list] of Object.entries({ priorities, copiesPerRank }))
    if (list !== undefined && list.length !== axes.length)
      throw new ArgumentError(
        `${dispatcher}: ${list.length} ${name} for ${axes.length} axes, ${axes.join(", ")}; give one for each`,
      );
  for (const priority of priorities ?? []) checkPriority(dispatcher, priority);
  for (const copies of copiesPerRank ?? []) checkCounts(dispatcher, { copiesPerRank: copies });
};

/**
 * The levels of a mesh, from the outermost, one at least; of several, an axis with one rank is none.
 *
 * @throws ArgumentError where the axes do not make up the axis of the experts.
 */
export const levelsOf = (dispatcher: string, options: LevelOptions, axis: string): readonly Level[] => {
  const { axes, priorities = axes.map((_, i) => Math.max(1, tokenPriority - i)), copiesPerRank } = options;
  const sizes = axes.map((own) => axisSize(own));
  const strideOf = (i: number): number => sizes.slice(i + 1).reduce((product, size) => product * size, 1);
  const numRanks = axisSize(axis);
  const product = sizes[0]! * strideOf(0);
  if (product !== numRanks)
    throw new ArgumentError(
      `${dispatcher}: its axes have ${axes.map((own, i) => `${own} ${sizes[i]}`).join(" × ")} = ${product} ranks, but axis "${axis}" of the experts has ${numRanks}; name the axes whose product it is, from the outermost`,
    );
  const levels = axes.map(
    (own, i): Level => ({
      axis: own,
      numGroups: sizes[i]!,
      stride: strideOf(i),
      priority: priorities[i]!,
      ...(copiesPerRank && { copiesPerRank: copiesPerRank[i]! }),
    }),
  );
  return numRanks === 1 ? levels.slice(-1) : levels.filter(({ numGroups }) => numGroups > 1);
};
