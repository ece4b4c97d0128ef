import { createHash } from "node:crypto";
import { join } from "node:path";
import type { FileWrites } from "@skein/cli/node";

// A rank's writer thread loads this file: see file-writes.ts.

/** Name of a checkpoint file, and its size and hash at the time of writing. */
export interface SavedFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export const checkpointsFolder = (output: string): string => join(output, "checkpoints");

export const folderName = (step: number): string => `step-${String(step).padStart(8, "0")}`;

export const temporaryPrefix = ".writing-";

/** Returns the folder that contains the files of a checkpoint until all of them are written. */
export const temporaryFolder = (output: string, step: number): string =>
  join(checkpointsFolder(output), `${temporaryPrefix}${folderName(step)}`);

/**
 * Writes one file of an unfinished checkpoint. Each rank writes its own files.
 *
 * @param content content of the file, as consecutive byte arrays.
 */
export const writePart = (
  files: FileWrites,
  output: string,
  step: number,
  name: string,
  content: readonly Uint8Array[],
): SavedFile => {
  const folder = temporaryFolder(output, step);
  files.makeFolder(folder);
  files.writeDurably(join(folder, name), content);
  const hash = createHash("sha256");
  for (const piece of content) hash.update(piece);
  return { name, bytes: content.reduce((sum, { length }) => sum + length, 0), sha256: hash.digest("hex") };
};
