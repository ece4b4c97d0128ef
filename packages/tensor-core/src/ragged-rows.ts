import { ArgumentError } from "./errors.ts";

/** Row counts as numbers. A copy, so that the counts cannot change between check and use. */
export const readRowCounts = (bytes: Uint8Array): number[] => [...new Int32Array(new Uint8Array(bytes).buffer)];

/**
 * Check the row counts that a rank is about to send.
 *
 * @param counts one count per peer, or a single count for all peers.
 * @throws ArgumentError with the rank, the count and the capacity.
 */
export const checkRowCounts = (kind: string, rank: number, counts: readonly number[], capacity: number): void => {
  const wrong = counts.findIndex((count) => !(Number.isInteger(count) && count >= 0 && count <= capacity));
  if (wrong === -1) return;
  const receiver = counts.length === 1 ? "" : ` to rank ${wrong}`;
  throw new ArgumentError(
    `${kind}: rank ${rank} is asked to send ${counts[wrong]} rows${receiver}, but its chunks have ${capacity}; count 0 to ${capacity} rows, or raise the capacity`,
  );
};
