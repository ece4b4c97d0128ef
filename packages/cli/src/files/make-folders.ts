import { existsSync, mkdirSync, rmdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Creates a folder and its parents. Node's `recursive` option is not used, because it does not return below /proc and
 * /sys, whose folders report ENOENT when something is created in them.
 *
 * @returns the created folders, outermost first.
 * @throws the system's error; then all created folders are removed.
 */
export const makeFolders = (path: string, mode = 0o777): string[] => {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  if (missing.length === 0 && !statSync(path).isDirectory()) mkdirSync(path); // throws
  const made: string[] = [];
  try {
    for (const folder of missing) if (makeOne(folder, mode)) made.push(folder);
  } catch (error) {
    removeEmpty(made);
    throw error;
  }
  return made;
};

/** Creates one folder. @returns false if another process created the folder first. */
const makeOne = (folder: string, mode: number): boolean => {
  try {
    mkdirSync(folder, { mode });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST" && existsSync(folder) && statSync(folder).isDirectory())
      return false;
    throw error;
  }
};

/** Removes the folders created by `makeFolders`, if they are empty. */
export const removeEmpty = (made: readonly string[]): void => {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      return; // in use, so the parents are in use as well
    }
  }
};
