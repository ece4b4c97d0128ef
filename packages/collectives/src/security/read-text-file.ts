import type { Stats } from "node:fs";
import { readBoundedFile } from "./read-bounded-file.ts";

/** A file's text, and what the system says of it. */
interface TextFile {
  readonly text: string;
  readonly stats: Stats;
}

/** Read a small file of text that others may have put there: as `readBoundedFile`. */
export const readTextFile = (path: string, mostBytes: number, followsLinks = true): TextFile => {
  const { bytes, stats } = readBoundedFile(path, mostBytes, followsLinks);
  return { text: Buffer.from(bytes.buffer, 0, bytes.length).toString("utf8"), stats };
};
