import * as fs from "node:fs";
import { openIfRegular } from "@skein/tensor-core/backend";

/** A descriptor of a regular file, and what the system says of the file. */
export interface RegularFile {
  readonly file: number;
  readonly stats: fs.Stats;
}

/**
 * Open a file to read that others may have put there. Only a regular file: a device never ends, a pipe never begins.
 *
 * @param followsLinks whether the last part of the path may be a symbolic link. Default: true.
 * @returns a descriptor that the caller closes.
 * @throws the system's error, or an Error that completes "cannot be read (…)".
 */
export const openRegularFile = (path: string, followsLinks = true): RegularFile => {
  const { constants, openSync, closeSync, fstatSync } = fs;
  return openIfRegular<fs.Stats>(
    { constants, openSync, closeSync, fstatSync: (file) => fstatSync(file) },
    path,
    followsLinks,
  );
};
