import * as fs from "node:fs";
import { openIfRegular } from "@skein/tensor-core/backend";

/** Descriptor of a regular file, and its status. */
export interface RegularFile {
  readonly file: number;
  readonly stats: fs.Stats;
}

/**
 * Opens a file for reading that other users may have written. Only regular files are opened, because a device never
 * ends and a pipe may never begin.
 *
 * @param followsLinks whether the last part of the path may be a symbolic link. Default: true.
 * @returns a descriptor that the caller must close.
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
