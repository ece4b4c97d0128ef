import type { Stats } from "node:fs";
import { readBoundedFile } from "./read-bounded-file.ts";

/** Text and status of a file. */
interface TextFile {
  readonly text: string;
  readonly stats: Stats;
}

/** Reads a small text file that other users may have written, with `readBoundedFile`. */
export const readTextFile = (path: string, maxBytes: number, followsLinks = true): TextFile => {
  const { bytes, stats } = readBoundedFile(path, maxBytes, followsLinks);
  return { text: Buffer.from(bytes.buffer, 0, bytes.length).toString("utf8"), stats };
};
