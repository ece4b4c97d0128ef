import { ArgumentError } from "./errors.ts";

/** Decodes i32 row counts. Returns a copy, so that the counts cannot change between check and use. */
export const readRowCounts = (bytes: Uint8Array): number[] => [...new Int32Array(new Uint8Array(bytes).buffer)];

/**
 * Checks the row counts of a rank's send request.
 *
 * @param counts Number of rows to send: one count per peer, or a single count for all peers.
 * @throws ArgumentError if a count is negative or above `capacity`. The message contains the rank, the count and the
 * capacity.
 */
export const checkRowCounts = (kind: string, rank: number, counts: readonly number[], capacity: number): void => {
  const wrong = counts.findIndex((count) => !(Number.isInteger(count) && count >= 0 && count <= capacity));
  if (wrong === -1) return;
  const receiver = counts.length === 1 ? "" : ` to rank ${wrong}`;
  throw new ArgumentError(
    `${kind}: rank ${rank} is asked to send ${counts[wrong]} rows${receiver}, but its chunks have ${capacity}; count 0 to ${capacity} rows, or raise the capacity`,
  );
};
