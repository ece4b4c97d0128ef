import { ArgumentError } from "@skein/tensor-core";

/** What an all-to-all takes: α + β · n seconds, for n bytes that each rank sends. */
export interface ExchangeLine {
  readonly startupSeconds: number;
  readonly secondsPerByte: number;
}

/** Ranks cut into groups that follow one another, such as hosts, sockets, pairs. */
export interface ExchangeLevel {
  /** U(i): how many groups all ranks form. */
  readonly numGroups: number;
  /** Between groups of this level within one of the level above. */
  readonly between: ExchangeLine;
  /** Among all ranks of a group of this level, where no finer level is used. */
  readonly within: ExchangeLine;
}

/**
 * Measured times of the all-to-alls that a hierarchical exchange of tokens is made of; plain data.
 *
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export interface ExchangeLevels {
  /** G. */
  readonly numRanks: number;
  /** One all-to-all among all ranks. */
  readonly flat: ExchangeLine;
  /** D − 1 levels, the coarsest first. */
  readonly levels: readonly ExchangeLevel[];
}

/** One all-to-all of an exchange: each rank sends to one rank in each of `numPeers` groups. */
export interface Exchange {
  readonly line: ExchangeLine;
  /** Groups of all ranks that are told apart: a token travels once to each that it needs. */
  readonly numGroups: number;
  /** Groups per group of the level above, the own one included. */
  readonly numPeers: number;
  /** Ranks of a group of the level above; ranks of equal place in their groups send to each other. */
  readonly numPlaces: number;
}

/** @throws ArgumentError for groups that do not divide, and lines with a negative or infinite figure. */
export const checkExchangeLevels = ({ numRanks, flat, levels }: ExchangeLevels): void => {
  if (!Number.isInteger(numRanks) || numRanks < 1)
    throw new ArgumentError(`exchange levels: ${numRanks} ranks; give a whole number from 1`);
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
        `exchange levels: a line says ${startupSeconds} s + ${secondsPerByte} s/byte; both are finite and not negative, measure it anew`,
      );
  let above = 1;
  for (const [i, { numGroups }] of levels.entries()) {
    if (!Number.isInteger(numGroups) || numGroups < 1 || numGroups % above !== 0 || numRanks % numGroups !== 0)
      throw new ArgumentError(
        `exchange levels: level ${i + 1} has ${numGroups} groups, under ${above} and over ${numRanks} ranks; groups are a multiple of those above and divide the ranks`,
      );
    above = numGroups;
  }
};

/**
 * The all-to-alls of an exchange over d levels: for d = 1 the flat one; else one between groups for each level but the
 * d-th, and one within the groups of the last of them.
 */
export const exchangesOf = ({ numRanks, flat, levels }: ExchangeLevels, numLevels: number): readonly Exchange[] => {
  const used = levels.slice(0, numLevels - 1);
  const sizes = [1, ...used.map(({ numGroups }) => numGroups), numRanks];
  const lines = [...used.map(({ between }) => between), used.at(-1)?.within ?? flat];
  return lines.map((line, i) => ({
    line,
    numGroups: sizes[i + 1]!,
    numPeers: sizes[i + 1]! / sizes[i]!,
    numPlaces: numRanks / sizes[i]!,
  }));
};
