import { closeSync, rmSync, writeSync } from "node:fs";
import { openToWrite } from "./file-writes.ts";
import { eachLine } from "./each-line.ts";

const lineEnd = 10;

/**
 * Copies the lines that `keep` accepts from one file to another, in order. Reads like `eachLine`. If copying fails, for
 * example because the disk is full, the copy is removed.
 *
 * @throws ConfigError if `from` is not a regular file, or the system's error if reading or writing fails.
 */
export const copyLines = (from: string, to: string, keep: (line: string) => boolean, pieceBytes?: number): void => {
  let target: number | undefined;
  const write = (line: Buffer): void => {
    target ??= openToWrite(to);
    if (keep(line.toString("utf8"))) writeWhole(target, Buffer.concat([line, Buffer.of(lineEnd)]));
  };
  try {
    eachLine(from, write, pieceBytes);
    target ??= openToWrite(to);
  } catch (error) {
    if (target !== undefined) rmSync(to, { force: true });
    throw error;
  } finally {
    if (target !== undefined) closeSync(target);
  }
};

const writeWhole = (file: number, bytes: Buffer): void => {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
};
