import { closeSync, constants, fstatSync, openSync, type Stats } from "node:fs";

/** A descriptor of a regular file, and what the system says of the file. */
export interface RegularFile {
  readonly file: number;
  readonly stats: Stats;
}

/**
 * Open a file to read that others may have put there. Only a regular file: a device never ends, a pipe never begins.
 *
 * @param followsLinks Whether the last part of the path may be a symbolic link. Default: true.
 * @returns a descriptor that the caller closes.
 * @throws the system's error, or an Error that says in a few words what the file is instead.
 */
export const openRegularFile = (path: string, followsLinks = true): RegularFile => {
  // Opening a pipe waits for its writer, unless told not to; on regular files the flag means nothing.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = openSync(path, followsLinks ? flags : flags | (constants.O_NOFOLLOW ?? 0));
  try {
    const stats = fstatSync(file);
    if (stats.isFile()) return { file, stats };
  } catch (error) {
    closeSync(file);
    throw error;
  }
  closeSync(file);
  throw new Error("it is no regular file");
};
