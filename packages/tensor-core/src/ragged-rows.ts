import { ArgumentError } from "./errors.ts";

/** Row counts as numbers. A copy: what they say cannot change between the check and the use. */
export const readRowCounts = (bytes: Uint8Array): number[] => [...new Int32Array(new Uint8Array(bytes).buffer)];

/**
 * Check how many rows a rank is about to send.
 *
 * @param counts one for each peer, or one for all.
 * @throws ArgumentError naming the rank, the count and the capacity.
 */
export const checkRowCounts = (kind: string, rank: number, counts: readonly number[], capacity: number): void => {
  const wrong = counts.findIndex((count) => !(Number.isInteger(count) && count >= 0 && count <= capacity));
  if (wrong === -1) return;
  const receiver = counts.length === 1 ? "" : ` to rank ${wrong}`;
  throw new ArgumentError(
    `${kind}: rank ${rank} is asked to send ${counts[wrong]} rows${receiver}, but its chunks have ${capacity}; count 0 to ${capacity} rows, or raise the capacity`,
  );
};
