import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";

/** Data sets lie in memory as a whole; what is larger is none of them. */
const mostBytes = 2 ** 31;

/**
 * Read a file into shared memory, so that every thread sees one copy.
 *
 * @throws DataError that ends with `cure`, for anything but a regular file of up to 2 GiB, too.
 */
export const readShared = (path: string, cure: string): NamedBytes => {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)); // a pipe must not keep us waiting;
  } catch (cause) {
    throw new DataError(`${path} cannot be read (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`, {
      cause,
    });
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new DataError(`${path} is no regular file; ${cure}`);
    if (stats.size > mostBytes)
      throw new DataError(`${path} has ${stats.size} bytes, but a data set has at most ${mostBytes}; ${cure}`);
    const bytes = new Uint8Array(new SharedArrayBuffer(stats.size));
    for (let done = 0; done < bytes.length; ) {
      const read = readSync(file, bytes, done, bytes.length - done, done);
      if (read === 0)
        throw new DataError(`${path} ended after ${done} of ${bytes.length} bytes while it was read; ${cure}`);
      done += read;
    }
    return { name: path, bytes };
  } finally {
    closeSync(file);
  }
};
