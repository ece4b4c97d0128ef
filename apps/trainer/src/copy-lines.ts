import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { ConfigError } from "./errors.ts";

/** Bytes that are read at once. A line that is longer is none of ours. */
const mostLineBytes = 2 ** 20;
const lineEnd = 10;

/**
 * Copy the lines that `keep` wants from one file to another, in order.
 *
 * @param pieceBytes how many bytes are read at once, and the longest line: longer ones are left out.
 * @throws ConfigError where `from` is no regular file, which may have no end; the system's error.
 * Cost: memory of two pieces, however long the file.
 */
export const copyLines = (
  from: string,
  to: string,
  keep: (line: string) => boolean,
  pieceBytes: number = mostLineBytes,
): void => {
  // Opening a pipe waits for its writer, unless told not to; on regular files the flag means nothing.
  const source = openSync(from, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    if (!fstatSync(source).isFile())
      throw new ConfigError([`${from} is no regular file; remove it, or name another output folder`]);
    const target = openSync(to, "w");
    try {
      const piece = Buffer.alloc(2 * pieceBytes);
      let [held, tooLong] = [0, false]; // bytes of a line whose end has not come; whether it is longer than a piece
      const take = (line: Buffer): void => {
        if (!tooLong && line.length <= pieceBytes && keep(line.toString("utf8")))
          writeWhole(target, Buffer.concat([line, Buffer.of(lineEnd)]));
        tooLong = false;
      };
      for (let read = -1; read !== 0; ) {
        read = readSync(source, piece, held, pieceBytes, null);
        let begin = 0;
        const filled = piece.subarray(0, held + read);
        for (let end = filled.indexOf(lineEnd, held); end >= 0; end = filled.indexOf(lineEnd, begin)) {
          take(filled.subarray(begin, end));
          begin = end + 1;
        }
        held = filled.length - begin;
        if (held > pieceBytes) [held, tooLong] = [0, true];
        else piece.copyWithin(0, begin, filled.length);
      }
      if (held > 0) take(piece.subarray(0, held));
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
};

const writeWhole = (file: number, bytes: Buffer): void => {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
};
