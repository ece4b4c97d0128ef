import { type Dirent, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../errors.ts";

/** Returns the metadata of a path. Undefined if the path does not exist, or is a broken or circular link. */
export const statsAt = (path: string): Stats | undefined => {
  try {
    return statSync(path);
  } catch {
    return undefined; // opening the file will report the reason
  }
};

export const isFolder = (path: string): boolean => statsAt(path)?.isDirectory() === true;

const entriesIn = (folder: string): Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (cause) {
    throw new DataError(
      `${folder} cannot be read (${(cause as NodeJS.ErrnoException).code}); check its permissions, or give another folder`,
      { cause },
    );
  }
};

/** Returns all files below a folder, at any depth. Links to folders are not followed, because they may form a cycle. */
export const filesBelow = (folder: string): string[] =>
  entriesIn(folder)
    .filter(({ name }) => !name.startsWith("."))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesBelow(path);
      // Calls stat only for links, because on a network file system each call is a round trip.
      return entry.isSymbolicLink() && isFolder(path) ? [] : [path];
    });

/** Formats the first names of a list, and the number of further names. */
export const someOf = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
