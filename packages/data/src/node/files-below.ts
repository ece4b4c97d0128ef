import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Files below a folder, whatever the depth; links to folders are not followed, which might lead back. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
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
