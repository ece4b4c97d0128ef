import { closeSync, constants, existsSync, lstatSync, openSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigError, describeError } from "../errors.ts";
import { makeFolders } from "./make-folders.ts";

// Where a run will write is looked at before it trains: a place that cannot be used is wrong use, told in a line, and
// not the end of an hour's work.

/** What is wrong with a place, by the system's code. Others, such as a full disk, say nothing about the place. */
const placeFaults: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EEXIST: "a file is in its place",
  EINVAL: "no file can have that name",
  EISDIR: "a folder is in its place",
  ELOOP: "it is a link, or its links lead in a circle",
  ENAMETOOLONG: "the path is too long",
  ENOENT: "the folder that it is to be in does not exist, or takes no files",
  ENOTDIR: "a part of the path is a file",
  ENXIO: "it is a pipe that nobody reads, or no file",
  EPERM: "this user may not write there",
  EROFS: "the disk is read-only",
};

/** An error about a place, told as wrong use; any other error as it is. @param what names option and path. */
export const explainPlace = (error: unknown, what: string, cure: string): unknown => {
  const { code } = describeError(error);
  const fault = placeFaults[code];
  return fault === undefined ? error : new ConfigError([`${what}: cannot be written (${code}: ${fault}); ${cure}`]);
};

/**
 * Open a file for writing as a run will, and leave everything as it was. Never waits, as opening a pipe otherwise does.
 */
const tryToWrite = (path: string): void => {
  const isNew = !existsSync(path);
  closeSync(openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK, 0o666));
  if (isNew) rmSync(path, { force: true });
};

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

/** @throws ConfigError where a file cannot be written in this place. */
export const requireWritable = (path: string, option: string): void => {
  try {
    tryToWrite(path);
  } catch (error) {
    throw explainPlace(error, `${option} ${path}`, "name a file in a folder that is there and that you may write to");
  }
};

/** @throws ConfigError where a file cannot be put in this place by renaming another one to it. */
export const requireReplaceable = (path: string, option: string): void => {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats !== undefined && !stats.isFile())
    throw new ConfigError([
      `${option} ${path}: is ${stats.isDirectory() ? "a folder" : "no regular file"}; name a file`,
    ]);
  try {
    tryToWrite(`${path}.tmp`);
  } catch (error) {
    throw explainPlace(error, `${option} ${path}`, "name a file in a folder that is there and that you may write to");
  }
};

/**
 * @throws ConfigError where a file cannot be put in this place, even when the folders above it are made. Leaves those
 * that it has made.
 */
export const requireNewFile = (path: string, option: string): void => {
  try {
    makeFolders(dirname(path));
  } catch (error) {
    throw explainPlace(error, `${option} ${path}`, "name a file in a folder that you may write to");
  }
  requireReplaceable(path, option);
};

/**
 * @throws ConfigError where nothing can be written in a folder, or in those of the files and folders that are there. A
 * file that is a link is refused: in a folder of others it may lead anywhere.
 * @param what names option and path.
 */
export const requireFolder = (
  folder: string,
  what: string,
  { files, folders }: { readonly files: readonly string[]; readonly folders: readonly string[] },
): void => {
  const linked = files.map((name) => join(folder, name)).find((path) => isLink(path));
  if (linked !== undefined)
    throw new ConfigError([`${what}: ${linked} is a link, through which nothing is written; remove it`]);
  const probe = `.probe-${process.pid}`;
  for (const path of [
    join(folder, probe),
    ...[...files, ...folders].map((name) => join(folder, name)).filter((path) => existsSync(path)),
  ]) {
    try {
      tryToWrite(folders.includes(basename(path)) ? join(path, probe) : path);
    } catch (error) {
      throw explainPlace(
        error,
        basename(path) === probe ? what : `${what}: ${path}`,
        "name a folder that you may write to",
      );
    }
  }
};
