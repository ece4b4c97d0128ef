import { ArgumentError } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { checkCounts, checkPriority, tokenPriority } from "../options.ts";

/** Hierarchy of the ranks along the experts' axis, in nested groups such as hosts, sockets and pairs. */
export interface LevelOptions {
  /**
   * Mesh axes whose product is the experts' axis, from the outermost (between hosts) to the innermost. The mesh
   * contains these axes in addition to the experts' axis. The experts' axis numbers ranks in row-major order: the
   * innermost axis varies fastest.
   */
  readonly axes: readonly string[];
  /**
   * Priority of the collectives along each axis, 0 to 3. Collectives of equal priority wait for each other. Collectives
   * of different priorities run concurrently, and a higher priority is sent first. Counts are sent with the priority of
   * the first axis. Default: 3 for the outermost axis, which is the slowest axis, and one less for each further axis,
   * at least 1. So priority 0, the priority of gradients, is not used.
   */
  readonly priorities?: readonly number[];
  /**
   * Maximum number of token copies of one chunk that one rank sends to another rank, for each axis. Default: the
   * largest possible number, which wastes memory if loads are even. A run that exceeds the maximum fails with an
   * `ArgumentError` that contains the rank and both counts.
   */
  readonly copiesPerRank?: readonly number[];
}

/** One level of the hierarchy: a mesh axis of the ranks. */
export interface Level {
  readonly axis: string;
  /** g, number of ranks along the axis. */
  readonly numGroups: number;
  /**
   * Stride of this axis: the indices along the experts' axis of two ranks that are adjacent along this axis differ by
   * this number.
   */
  readonly stride: number;
  readonly priority: number;
  readonly copiesPerRank?: number;
}

/** Throws ArgumentError if options of a level dispatcher are invalid for every mesh. */
export const checkLevels = (dispatcher: string, { axes, priorities, copiesPerRank }: LevelOptions): void => {
  if (axes.length === 0 || new Set(axes).size !== axes.length)
    throw new ArgumentError(
      `${dispatcher}: axes are [${axes.join(", ")}]; name each mesh axis that divides the axis of the experts once, from the outermost`,
    );
  for (const [name, list] of Object.entries({ priorities, copiesPerRank }))
    if (list !== undefined && list.length !== axes.length)
      throw new ArgumentError(
        `${dispatcher}: ${list.length} ${name} for ${axes.length} axes, ${axes.join(", ")}; give one per axis`,
      );
  for (const priority of priorities ?? []) checkPriority(dispatcher, priority);
  for (const copies of copiesPerRank ?? []) checkCounts(dispatcher, { copiesPerRank: copies });
};

/**
 * Returns the levels of a mesh, outermost level first. Axes with a single rank are skipped, unless no level would be
 * left.
 *
 * @throws ArgumentError if the product of the axes is not the experts' axis.
 */
export const levelsOf = (dispatcher: string, options: LevelOptions, axis: string): readonly Level[] => {
  const { axes, priorities = axes.map((_, i) => Math.max(1, tokenPriority - i)), copiesPerRank } = options;
  const sizes = axes.map((own) => axisSize(own));
  const strideOf = (i: number): number => sizes.slice(i + 1).reduce((product, size) => product * size, 1);
  const numRanks = axisSize(axis);
  const product = sizes[0]! * strideOf(0);
  if (product !== numRanks)
    throw new ArgumentError(
      `${dispatcher}: axes have ${axes.map((own, i) => `${own} ${sizes[i]}`).join(" × ")} = ${product} ranks, but axis "${axis}" of the experts has ${numRanks}; name axes with that product, from the outermost`,
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
