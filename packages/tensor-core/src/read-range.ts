/** Interface of an open file, such as Node's `FileHandle`. */
export interface RangeSource {
  read(target: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** Maximum bytes per read or write call; Node's limit is below 2 GiB. */
export const maxBytesPerCall: number = 2 ** 30;

/**
 * Reads a range of a file without blocking the thread.
 *
 * @returns Bytes `begin` to `end` − 1 in a new buffer; fewer if the file ends before `end`. Cost: one read call per
 * GiB; more calls if the system returns fewer bytes than requested.
 */
export const readRange = async (file: RangeSource, begin: number, end: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(end - begin);
  let filled = 0;
  while (filled < bytes.length) {
    const most = Math.min(bytes.length - filled, maxBytesPerCall);
    const { bytesRead } = await file.read(bytes, filled, most, begin + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
};
