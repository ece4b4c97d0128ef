import * as fs from "node:fs";
import { openIfRegular } from "@skein/tensor-core/backend";

/** Descriptor and status of a regular file. */
export interface RegularFile {
  readonly file: number;
  readonly stats: fs.Stats;
}

/**
 * Opens a file that other users may have written, for reading. Refuses files that are not regular files, because
 * reading a device may never end, and opening a pipe may block forever.
 *
 * @param followsLinks whether the last component of the path may be a symbolic link. Default: true.
 * @returns a descriptor that the caller must close.
 * @throws the system's error, or an Error whose message completes "cannot be read (…)".
 */
export const openRegularFile = (path: string, followsLinks = true): RegularFile => {
  const { constants, openSync, closeSync, fstatSync } = fs;
  return openIfRegular<fs.Stats>(
    { constants, openSync, closeSync, fstatSync: (file) => fstatSync(file) },
    path,
    followsLinks,
  );
};
