import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
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

/**
 * Open a regular file. A pipe or a device does not keep us waiting.
 *
 * @throws DataError that ends with `cure`, for anything but a regular file, too.
 */
export const openFile = (path: string, cure: string): OpenFile => {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (cause) {
    throw new DataError(`${path} cannot be read (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`, {
      cause,
    });
  }
  const stats = fstatSync(file);
  if (!stats.isFile()) {
    closeSync(file);
    throw new DataError(`${path} is no regular file; ${cure}`);
  }
  const read = (begin: number, target: Uint8Array): void => {
    for (let filled = 0; filled < target.length; ) {
      const count = readSync(file, target, filled, target.length - filled, begin + filled);
      if (count === 0)
        throw new DataError(`${path} ended after ${begin + filled} of ${stats.size} bytes while it was read; ${cure}`);
      filled += count;
    }
  };
  return {
    name: path,
    sizeBytes: stats.size,
    read,
    *pieces(begin = 0) {
      const piece = new Uint8Array(Math.min(pieceBytes, Math.max(0, stats.size - begin)));
      for (let at = begin; at < stats.size; at += piece.length) {
        const part = piece.subarray(0, Math.min(piece.length, stats.size - at));
        read(at, part);
        yield part;
      }
    },
    close: () => closeSync(file),
  };
};
