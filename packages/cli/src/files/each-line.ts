import { closeSync, readSync } from "node:fs";
import { openRegularFile } from "@skein/collectives/files";
import { ConfigError } from "../errors.ts";

/** Default number of bytes per read. */
const defaultPieceBytes = 2 ** 20;
/**
 * Maximum length of a line, in reads of `pieceBytes` bytes. The longest lines, which contain sample images or metrics
 * of thousands of experts, need about a dozen reads of the default size.
 */
const maxPiecesOfLine = 64;
const lineEnd = 10;

const openLines = (path: string): number => {
  try {
    return openRegularFile(path).file;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new ConfigError([`${path} is not a regular file; remove it, or name another output folder`]);
  }
};

/**
 * Reads a file line by line. The last line need not end with a newline.
 *
 * Memory: two times `pieceBytes`, or two times the longest line, for a file of any length.
 *
 * @param pieceBytes number of bytes per read. Lines longer than 64 reads are skipped.
 * @throws ConfigError if the path is not a regular file, because other files may never end; the system's error if
 * reading fails.
 */
export const eachLine = (path: string, take: (line: Buffer) => void, pieceBytes: number = defaultPieceBytes): void => {
  const source = openLines(path);
  try {
    const maxLineBytes = maxPiecesOfLine * pieceBytes;
    let piece = Buffer.alloc(2 * pieceBytes);
    let [numHeld, isTooLong] = [0, false]; // bytes of the incomplete line, and whether this line is too long
    const takeShort = (line: Buffer): void => {
      if (!isTooLong && line.length <= maxLineBytes) take(line);
      isTooLong = false;
    };
    for (let read = -1; read !== 0; ) {
      if (numHeld + pieceBytes > piece.length) piece = Buffer.concat([piece], 2 * piece.length);
      read = readSync(source, piece, numHeld, pieceBytes, null);
      let begin = 0;
      const filled = piece.subarray(0, numHeld + read);
      for (let end = filled.indexOf(lineEnd, numHeld); end >= 0; end = filled.indexOf(lineEnd, begin)) {
        takeShort(filled.subarray(begin, end));
        begin = end + 1;
      }
      numHeld = filled.length - begin;
      if (numHeld > maxLineBytes) [numHeld, isTooLong] = [0, true];
      else piece.copyWithin(0, begin, filled.length);
    }
    if (numHeld > 0) takeShort(piece.subarray(0, numHeld));
  } finally {
    closeSync(source);
  }
};
