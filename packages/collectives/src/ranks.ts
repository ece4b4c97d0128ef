import { ArgumentError } from "@skein/tensor-core";

/**
 * Formats ranks for a message, with ranges of three or more ranks abbreviated: "rank 3", "ranks 0, 2, 5–9".
 *
 * @example
 * ```ts
 * console.log(formatRanks([0, 1, 2, 5])); // ranks 0–2, 5
 * ```
 */
export const formatRanks = (ranks: readonly number[]): string => {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const rank of sorted) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === rank - 1) last[1] = rank;
    else runs.push([rank, rank]);
  }
  const parts = runs.map(([first, last]) =>
    first === last ? `${first}` : `${first}${last === first + 1 ? ", " : "–"}${last}`,
  );
  return `${sorted.length === 1 ? "rank" : "ranks"} ${parts.join(", ")}`;
};

/**
 * Checks the rank of a loss report.
 *
 * @throws ArgumentError if the rank is not in the world.
 */
export const checkLost = (rank: number, worldSize: number): void => {
  if (!(Number.isInteger(rank) && rank >= 0 && rank < worldSize))
    throw new ArgumentError(`rank ${rank} cannot be lost in a world of ${worldSize}; use 0 to ${worldSize - 1}`);
};

/**
 * Checks a process number.
 *
 * @throws ArgumentError if the process is not in the world.
 */
export const checkProcess = (process: number, count: number): void => {
  if (!(Number.isInteger(process) && process >= 0 && process < count))
    throw new ArgumentError(
      `process ${process} is not in a world of ${count} processes; use the numbers of the roster`,
    );
};
