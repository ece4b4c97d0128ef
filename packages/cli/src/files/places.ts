import { closeSync, constants, existsSync, lstatSync, openSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigError, describeError } from "../errors.ts";
import { makeFolders } from "./make-folders.ts";

// Output paths of a run are checked before training. An unusable path is a usage error, reported in one line, instead
// of a failure after an hour of work.

/**
 * Descriptions of problems with a path, by the system's error code. Errors with another code, such as for a full disk,
 * are not caused by the path.
 */
const pathFaults: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EEXIST: "a file exists there",
  EINVAL: "a file cannot have that name",
  EISDIR: "a folder exists there",
  ELOOP: "it is a symbolic link, or its links form a cycle",
  ENAMETOOLONG: "the path is too long",
  ENOENT: "its folder does not exist, or cannot hold files",
  ENOTDIR: "a part of the path is a file",
  ENXIO: "it is a pipe without a reader, or not a file",
  EPERM: "this user may not write there",
  EROFS: "the disk is read-only",
};

/**
 * Converts an error about a path to a usage error; returns all other errors unchanged.
 * @param what name of the option, and path.
 */
export const explainPath = (error: unknown, what: string, cure: string): unknown => {
  const { code } = describeError(error);
  const fault = pathFaults[code];
  return fault === undefined ? error : new ConfigError([`${what}: cannot be written (${code}: ${fault}); ${cure}`]);
};

/**
 * Tests whether a file can be opened for writing as a run does, without leaving changes. Does not wait for a reader of
 * a pipe.
 */
const tryToWrite = (path: string): void => {
  const isNew = !existsSync(path);
  closeSync(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK, 0o666));
  if (isNew) rmSync(path, { force: true });
};

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** Requires that a file can be written at a path. @throws ConfigError. */
export const requireWritable = (path: string, option: string): void => {
  try {
    tryToWrite(path);
  } catch (error) {
    throw explainPath(error, `${option} ${path}`, "name a file in an existing folder that you may write to");
  }
};

/** Requires that another file can be renamed to this path. @throws ConfigError. */
export const requireReplaceable = (path: string, option: string): void => {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && !stats.isFile())
    throw new ConfigError([
      `${option} ${path}: is ${stats.isDirectory() ? "a folder" : "not a regular file"}; name a file`,
    ]);
  try {
    tryToWrite(`${path}.tmp`);
  } catch (error) {
    throw explainPath(error, `${option} ${path}`, "name a file in an existing folder that you may write to");
  }
};

/**
 * Requires that a file can be written at this path after its parent folders are created. Created folders are not
 * removed.
 * @throws ConfigError.
 */
export const requireNewFile = (path: string, option: string): void => {
  try {
    makeFolders(dirname(path));
  } catch (error) {
    throw explainPath(error, `${option} ${path}`, "name a file in a folder that you may write to");
  }
  requireReplaceable(path, option);
};

/**
 * Requires that a run can write in a folder, and in the existing files and folders inside the folder. A file that is a
 * symbolic link is rejected, because in a folder of another user the link may point anywhere.
 * @param what name of the option, and path.
 * @throws ConfigError.
 */
export const requireFolder = (
  folder: string,
  what: string,
  { files, folders }: { readonly files: readonly string[]; readonly folders: readonly string[] },
): void => {
  const linked = files.map((name) => join(folder, name)).find((path) => isLink(path));
  if (linked !== undefined)
    throw new ConfigError([
      `${what}: ${linked} is a symbolic link, and the run does not write through links; remove it`,
    ]);
  const probe = `.probe-${process.pid}`;
  for (const path of [
    join(folder, probe),
    ...[...files, ...folders].map((name) => join(folder, name)).filter((path) => existsSync(path)),
  ]) {
    try {
      tryToWrite(folders.includes(basename(path)) ? join(path, probe) : path);
    } catch (error) {
      throw explainPath(
        error,
        basename(path) === probe ? what : `${what}: ${path}`,
        "name a folder that you may write to",
      );
    }
  }
};
