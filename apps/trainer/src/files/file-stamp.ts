import { lstatSync, type Stats } from "node:fs";

/** Facts that identify an unchanged file without opening it. */
export interface FileStamp {
  readonly inode: number;
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly writtenAt: number;
  /** When the stamp was taken, milliseconds since 1970. */
  readonly seenAt: number;
}

/**
 * Milliseconds after a write within which another write may have the same time, because clocks of file systems are
 * coarse.
 */
const coarseMilliseconds = 2000;

export const stampOf = ({ ino, size, mtimeMs }: Stats): FileStamp => ({
  inode: ino,
  bytes: size,
  writtenAt: mtimeMs,
  seenAt: Date.now(),
});

/** @returns undefined if the file does not exist or is not a regular file; links are not followed. */
export const stampAt = (path: string): FileStamp | undefined => {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isFile() === true ? stampOf(stats) : undefined;
  } catch {
    return undefined;
  }
};

/** Whether the content that was read when the stamp `then` was taken is still current. */
export const isUnchanged = (then: FileStamp | undefined, now: FileStamp | undefined): boolean =>
  then === undefined || now === undefined
    ? then === now
    : then.inode === now.inode &&
      then.bytes === now.bytes &&
      then.writtenAt === now.writtenAt &&
      Math.abs(then.seenAt - then.writtenAt) > coarseMilliseconds;
