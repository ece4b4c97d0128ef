import { closeSync, readSync, type Stats } from "node:fs";
import { openRegularFile } from "./open-regular-file.ts";

/** What a file held, and what the system says of it. */
export interface BoundedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly stats: Stats;
}

/** The most that one call of the system reads. */
const mostAtOnce = 2 ** 30;

/**
 * Read a file that others may have put there: a regular one, of bounded size.
 *
 * @param mostBytes that such a file may have.
 * @param followsLinks as of `openRegularFile`.
 * @throws the system's error, or an Error that says in a few words what the file is instead.
 * Cost: makes room for what the file is said to hold, never for more than `mostBytes`.
 */
export const readBoundedFile = (path: string, mostBytes: number, followsLinks = true): BoundedFile => {
  const { file, stats } = openRegularFile(path, followsLinks);
  try {
    if (stats.size > mostBytes) throw new Error(`it has ${stats.size} bytes, at most ${mostBytes} are allowed`);
    let bytes = new Uint8Array(stats.size + 1); // one more, to see the end
    let length = 0;
    for (;;) {
      const read = readSync(file, bytes, length, Math.min(bytes.length - length, mostAtOnce), null);
      length += read;
      if (length > mostBytes) throw new Error(`it grew beyond ${mostBytes} bytes while it was read`);
      if (read === 0) return { bytes: bytes.subarray(0, length), stats };
      if (length < bytes.length) continue;
      // A file of /proc says that it is empty, and one that is written to grows.
      const larger = new Uint8Array(Math.min(mostBytes + 1, Math.max(2 * length, 65_536)));
      larger.set(bytes);
      bytes = larger;
    }
  } finally {
    closeSync(file);
  }
};
