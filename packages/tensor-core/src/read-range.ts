/** A file that is open, as `FileHandle` of Node's is. */
export interface RangeSource {
  read(target: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** What Node reads or writes in one call is below 2 GiB. */
export const mostBytesPerCall: number = 2 ** 30;

/**
 * Read a range of a file, without keeping the thread waiting.
 *
 * @returns bytes `begin` to `end` − 1, in memory of their own; fewer where the file ends before.
 * Cost: a call for each GiB, and more where the system gives less than was asked for.
 */
export const readRange = async (file: RangeSource, begin: number, end: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(end - begin);
  let filled = 0;
  while (filled < bytes.length) {
    const most = Math.min(bytes.length - filled, mostBytesPerCall);
    const { bytesRead } = await file.read(bytes, filled, most, begin + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
};
