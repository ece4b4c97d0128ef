import * as fs from "node:fs";
import { type FileContent, openCheckedFile, readRegularText } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";

/** An open regular file that is read in chunks. */
export interface OpenFile {
  readonly name: string;
  readonly sizeBytes: number;
  /** Fills `target` with the bytes from offset `begin`. @throws DataError if the file ends before `target` is full. */
  read(begin: number, target: Uint8Array): void;
  /**
   * Yields the content from offset `begin` in chunks of 1 MiB; the last chunk may be shorter. Each chunk is valid until
   * the next chunk is requested.
   */
  pieces(begin?: number): Generator<Uint8Array, void>;
  close(): void;
}

const pieceBytes = 2 ** 20;

const fault = (message: string, options?: ErrorOptions): DataError => new DataError(message, options);

/**
 * Opens a file with `openCheckedFile`.
 *
 * @throws DataError that ends with `cure` if the path is not a readable regular file; DataError if the file has another
 * format.
 */
export const openFile = (path: string, cure: string, holds: FileContent): OpenFile => {
  const { file, sizeBytes } = openCheckedFile(fs, path, { holds, cure, fault });
  const read = (begin: number, target: Uint8Array): void => {
    for (let filled = 0; filled < target.length; ) {
      const count = fs.readSync(file, target, filled, target.length - filled, begin + filled);
      if (count === 0)
        throw new DataError(`${path} ended after ${begin + filled} of ${sizeBytes} bytes during reading; ${cure}`);
      filled += count;
    }
  };
  return {
    name: path,
    sizeBytes,
    read,
    *pieces(begin = 0) {
      const piece = new Uint8Array(Math.min(pieceBytes, Math.max(0, sizeBytes - begin)));
      for (let at = begin; at < sizeBytes; at += piece.length) {
        const part = piece.subarray(0, Math.min(piece.length, sizeBytes - at));
        read(at, part);
        yield part;
      }
    },
    close: () => fs.closeSync(file),
  };
};

/** Reads a complete text file with `readRegularText`. @throws DataError. */
export const readText = (path: string, cure: string, holds: FileContent): string =>
  readRegularText(fs, path, { holds, cure, fault });
