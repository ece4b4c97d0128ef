import { ArgumentError } from "@skein/tensor-core";

/** Linear cost model of an all-to-all: α + β · n seconds, for n bytes sent per rank. */
export interface ExchangeLine {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** One level of a hierarchy: groups of consecutive ranks, such as hosts, sockets or pairs. */
export interface ExchangeLevel {
  /** U(i), total number of groups at this level. */
  readonly numGroups: number;
  /** Cost of an all-to-all between this level's groups, within one group of the next coarser level. */
  readonly between: ExchangeLine;
  /** Cost of an all-to-all within a group of this level, if no finer level is used. */
  readonly within: ExchangeLine;
}

/**
 * Measured costs of the all-to-alls in a hierarchical token exchange; plain data.
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export interface ExchangeLevels {
  /** G, number of ranks. */
  readonly numRanks: number;
  /** Cost of a flat all-to-all among all ranks. */
  readonly flat: ExchangeLine;
  /**
   * Levels of the hierarchy, coarsest level first. There are D − 1 levels if an exchange may use up to D all-to-alls.
   */
  readonly levels: readonly ExchangeLevel[];
}

/** One all-to-all of an exchange, in which each rank sends to one rank in each of `numPeers` groups. */
export interface Exchange {
  readonly line: ExchangeLine;
  /** Total number of destination groups. A token is sent once to each group that needs the token. */
  readonly numGroups: number;
  /** Number of groups per group of the next coarser level, including the sender's group. */
  readonly numPeers: number;
  /**
   * Number of ranks per group of the next coarser level. Ranks with equal indices in their groups send to each other.
   */
  readonly parentGroupSize: number;
}

/** Throws ArgumentError if group counts do not divide each other, or a cost is negative or infinite. */
export const checkExchangeLevels = ({ numRanks, flat, levels }: ExchangeLevels): void => {
  if (!Number.isInteger(numRanks) || numRanks < 1)
    throw new ArgumentError(`exchange levels: numRanks is ${numRanks}; use a whole number from 1`);
  const lines = [flat, ...levels.flatMap(({ between, within }) => [between, within])];
  for (const { startupSeconds, secondsPerByte } of lines)
    if (
      !(
        startupSeconds >= 0 &&
        secondsPerByte >= 0 &&
        Number.isFinite(startupSeconds) &&
        Number.isFinite(secondsPerByte)
      )
    )
      throw new ArgumentError(
        `exchange levels: a cost of ${startupSeconds} s + ${secondsPerByte} s/byte; both numbers must be finite and not negative, measure again`,
      );
  let above = 1;
  for (const [i, { numGroups }] of levels.entries()) {
    if (!Number.isInteger(numGroups) || numGroups < 1 || numGroups % above !== 0 || numRanks % numGroups !== 0)
      throw new ArgumentError(
        `exchange levels: level ${i + 1} has ${numGroups} groups, with ${above} groups in the level above and ${numRanks} ranks; use a multiple of the groups above that divides the ranks`,
      );
    above = numGroups;
  }
};

/**
 * Returns the all-to-alls of an exchange over d levels. For d = 1, there is only the flat all-to-all. For d > 1, there
 * is one all-to-all between groups per level, for the d − 1 coarsest levels, and one all-to-all within the groups of
 * the finest of these levels.
 */
export const exchangesOf = ({ numRanks, flat, levels }: ExchangeLevels, numLevels: number): readonly Exchange[] => {
  const used = levels.slice(0, numLevels - 1);
  const sizes = [1, ...used.map(({ numGroups }) => numGroups), numRanks];
  const lines = [...used.map(({ between }) => between), used.at(-1)?.within ?? flat];
  return lines.map((line, i) => ({
    line,
    numGroups: sizes[i + 1]!,
    numPeers: sizes[i + 1]! / sizes[i]!,
    parentGroupSize: numRanks / sizes[i]!,
  }));
};
