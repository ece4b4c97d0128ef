import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../mnist.ts";

/** Read a file into shared memory, so that every thread sees one copy. @throws DataError that ends with `cure`. */
export const readShared = (path: string, cure: string): NamedBytes => {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (cause) {
    throw new DataError(`${path} cannot be read (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`, { cause });
  }
  try {
    const bytes = new Uint8Array(new SharedArrayBuffer(fstatSync(file).size));
    for (let done = 0; done < bytes.length; ) {
      const read = readSync(file, bytes, done, bytes.length - done, done);
      if (read === 0) throw new DataError(`${path} ended after ${done} of ${bytes.length} bytes while it was read; ${cure}`);
      done += read;
    }
    return { name: path, bytes };
  } finally {
    closeSync(file);
  }
};
