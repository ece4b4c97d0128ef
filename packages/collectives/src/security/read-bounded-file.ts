import { closeSync, readSync, type Stats } from "node:fs";
import { openRegularFile } from "./open-regular-file.ts";

/** Contents and status of a file. */
export interface BoundedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly stats: Stats;
}

/** Maximum number of bytes that one system call reads. */
const maxConcurrent = 2 ** 30;

/**
 * Reads a regular file of bounded size that other users may have written. Allocates the reported size of the file, at
 * most `maxBytes`.
 *
 * @param maxBytes maximum size of the file.
 * @param followsLinks as in `openRegularFile`.
 * @throws the system's error, or an Error that names the actual type of the file in a few words.
 */
export const readBoundedFile = (path: string, maxBytes: number, followsLinks = true): BoundedFile => {
  const { file, stats } = openRegularFile(path, followsLinks);
  try {
    if (stats.size > maxBytes) throw new Error(`it has ${stats.size} bytes, at most ${maxBytes} are allowed`);
    let bytes = new Uint8Array(stats.size + 1); // One extra byte, to detect the end.
    let length = 0;
    for (;;) {
      const read = readSync(file, bytes, length, Math.min(bytes.length - length, maxConcurrent), null);
      length += read;
      if (length > maxBytes) throw new Error(`it grew beyond ${maxBytes} bytes while it was read`);
      if (read === 0) return { bytes: bytes.subarray(0, length), stats };
      if (length < bytes.length) continue;
      // A file of /proc reports a size of 0, and a file that another process writes grows.
      const larger = new Uint8Array(Math.min(maxBytes + 1, Math.max(2 * length, 65_536)));
      larger.set(bytes);
      bytes = larger;
    }
  } finally {
    closeSync(file);
  }
};
