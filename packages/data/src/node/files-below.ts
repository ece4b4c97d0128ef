import { type Dirent, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../errors.ts";

/** What the system knows of a path; undefined if there is nothing, or a link that leads nowhere or in a circle. */
export const statsAt = (path: string): Stats | undefined => {
  try {
    return statSync(path);
  } catch {
    return undefined; // who opens it says why
  }
};

export const isFolder = (path: string): boolean => statsAt(path)?.isDirectory() === true;

const entriesIn = (folder: string): Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (cause) {
    throw new DataError(
      `${folder} cannot be read (${(cause as NodeJS.ErrnoException).code}); see that it may be read, or name another folder`,
      { cause },
    );
  }
};

/** Files below a folder, whatever the depth; links to folders are not followed, which might lead back. */
export const filesBelow = (folder: string): string[] =>
  entriesIn(folder)
    .filter(({ name }) => !name.startsWith("."))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesBelow(path);
      // asked of links alone: each question is a way across a network, where the disk is there
      return entry.isSymbolicLink() && isFolder(path) ? [] : [path];
    });

/** Some names of a list, and how many more there are. */
export const someOf = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`;
