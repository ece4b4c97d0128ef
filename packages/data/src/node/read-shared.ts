import type { FileContent } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { openFile } from "./file-pieces.ts";

/** Maximum size of a file in bytes, because the complete data set is stored in memory. */
const maxBytes = 2 ** 31;

/**
 * Reads a file into shared memory, so that all threads share one copy.
 *
 * @param holds Expected content of the file.
 * @throws DataError that ends with `cure` if the file cannot be read, is not a regular file, or is larger than 2 GiB.
 */
export const readShared = (path: string, cure: string, holds: FileContent): NamedBytes => {
  const file = openFile(path, cure, holds);
  try {
    if (file.sizeBytes > maxBytes)
      throw new DataError(`${path} has ${file.sizeBytes} bytes, but a data set has at most ${maxBytes}; ${cure}`);
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
