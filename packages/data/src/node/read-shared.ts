import type { FileContent } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { openFile } from "./file-pieces.ts";

/** Data sets lie in memory as a whole; what is larger is none of them. */
const mostBytes = 2 ** 31;

/**
 * Read a file into shared memory, so that every thread sees one copy.
 *
 * @param holds what the file must hold.
 * @throws DataError that ends with `cure`, for anything but a regular file of up to 2 GiB, too.
 */
export const readShared = (path: string, cure: string, holds: FileContent): NamedBytes => {
  const file = openFile(path, cure, holds);
  try {
    if (file.sizeBytes > mostBytes)
      throw new DataError(`${path} has ${file.sizeBytes} bytes, but a data set has at most ${mostBytes}; ${cure}`);
    const bytes = new Uint8Array(new SharedArrayBuffer(file.sizeBytes));
    let done = 0;
    for (const piece of file.pieces()) {
      bytes.set(piece, done);
      done += piece.length;
    }
    return { name: path, bytes };
  } finally {
    file.close();
  }
};
