import * as fs from "node:fs";
import { type FileContent, openRegularFile, readRegularText } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";

/** A regular file that is open to be read in pieces. */
export interface OpenFile {
  readonly name: string;
  readonly sizeBytes: number;
  /** Fill `target` with what follows from byte `begin` on. @throws DataError where the file ends before. */
  read(begin: number, target: Uint8Array): void;
  /** What follows of it from `begin`, in pieces of a mebibyte and a last shorter one; each is valid until the next. */
  pieces(begin?: number): Generator<Uint8Array, void>;
  close(): void;
}

const pieceBytes = 2 ** 20;

const fault = (message: string, options?: ErrorOptions): DataError => new DataError(message, options);

/** Opens a file as `openRegularFile` does. @throws DataError; what cannot be read ends with `cure`. */
export const openFile = (path: string, cure: string, holds: FileContent): OpenFile => {
  const { file, sizeBytes } = openRegularFile(fs, path, { holds, cure, fault });
  const read = (begin: number, target: Uint8Array): void => {
    for (let filled = 0; filled < target.length; ) {
      const count = fs.readSync(file, target, filled, target.length - filled, begin + filled);
      if (count === 0)
        throw new DataError(`${path} ended after ${begin + filled} of ${sizeBytes} bytes while it was read; ${cure}`);
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

/** Reads a file of text whole, as `readRegularText` does. @throws DataError. */
export const readText = (path: string, cure: string, holds: FileContent): string =>
  readRegularText(fs, path, { holds, cure, fault });
