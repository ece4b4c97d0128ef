import { ArgumentError } from "@skein/tensor-core";

/** Linear cost model of an all-to-all: α + β · n seconds, for n bytes sent per rank. */
export interface ExchangeLine {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** One level of a hierarchy: groups of consecutive ranks, such as hosts, sockets, pairs. */
export interface ExchangeLevel {
  /** U(i), total number of groups at this level. */
  readonly numGroups: number;
  /** Cost between groups of this level within one group of the next coarser level. */
  readonly between: ExchangeLine;
  /** Cost among all ranks of a group of this level, if no finer level is used. */
  readonly within: ExchangeLine;
}

/**
 * Measured costs of the all-to-alls that form a hierarchical exchange of tokens; plain data.
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export interface ExchangeLevels {
  /** G, number of ranks. */
  readonly numRanks: number;
  /** Cost of one all-to-all among all ranks. */
  readonly flat: ExchangeLine;
  /** D − 1 levels, the coarsest first. */
  readonly levels: readonly ExchangeLevel[];
}

/** One all-to-all of an exchange: each rank sends to one rank in each of `numPeers` groups. */
export interface Exchange {
  readonly line: ExchangeLine;
  /** Number of distinct destination groups over all ranks: a token is sent once to each group that it needs. */
  readonly numGroups: number;
  /** Number of groups per group of the next coarser level, the sender's own group included. */
  readonly numPeers: number;
  /**
   * Number of ranks in a group of the next coarser level. Ranks with the same index in their groups send to each other.
   */
  readonly parentGroupSize: number;
}

/**
 * Check exchange levels. @throws ArgumentError for numbers of groups that do not divide each other, and for negative or
 * infinite costs.
 */
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
 * Returns the all-to-alls of an exchange over d levels: for d = 1 the flat all-to-all; otherwise one between groups for
 * each of the d − 1 coarsest levels, and one within the groups of the last of them.
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
