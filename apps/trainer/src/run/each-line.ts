import { closeSync, readSync } from "node:fs";
import { openRegularFile } from "@skein/collectives/files";
import { ConfigError } from "../errors.ts";

/** Bytes that are read at once. A line that is longer is none of ours. */
export const mostLineBytes: number = 2 ** 20;
const lineEnd = 10;

const openLines = (path: string): number => {
  try {
    return openRegularFile(path).file;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new ConfigError([`${path} is no regular file; remove it, or name another output folder`]);
  }
};

/**
 * Read a file line by line; the last one counts without an end, too.
 *
 * @param pieceBytes how many bytes are read at once, and the longest line: longer ones are left out.
 * @throws ConfigError where it is no regular file, which may have no end; the system's error.
 * Cost: memory of two pieces, however long the file.
 */
export const eachLine = (path: string, take: (line: Buffer) => void, pieceBytes: number = mostLineBytes): void => {
  const source = openLines(path);
  try {
    const piece = Buffer.alloc(2 * pieceBytes);
    let [held, tooLong] = [0, false]; // bytes of a line whose end has not come; whether it is longer than a piece
    const takeShort = (line: Buffer): void => {
      if (!tooLong && line.length <= pieceBytes) take(line);
      tooLong = false;
    };
    for (let read = -1; read !== 0; ) {
      read = readSync(source, piece, held, pieceBytes, null);
      let begin = 0;
      const filled = piece.subarray(0, held + read);
      for (let end = filled.indexOf(lineEnd, held); end >= 0; end = filled.indexOf(lineEnd, begin)) {
        takeShort(filled.subarray(begin, end));
        begin = end + 1;
      }
      held = filled.length - begin;
      if (held > pieceBytes) [held, tooLong] = [0, true];
      else piece.copyWithin(0, begin, filled.length);
    }
    if (held > 0) takeShort(piece.subarray(0, held));
  } finally {
    closeSync(source);
  }
};
