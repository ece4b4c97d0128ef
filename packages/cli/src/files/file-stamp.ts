import { lstatSync, type Stats } from "node:fs";

/** Metadata that shows whether a file is unchanged, without opening the file. */
export interface FileStamp {
  readonly inode: number;
  readonly bytes: number;
  /** Modification time of the file, in milliseconds since 1970. */
  readonly writtenAt: number;
  /** Time at which the stamp was taken, in milliseconds since 1970. */
  readonly seenAt: number;
}

/**
 * Upper bound, in milliseconds, of the resolution of file times: after a write, another write within this time may have
 * the same time.
 */
const coarseMilliseconds = 2000;

export const stampOf = ({ ino, size, mtimeMs }: Stats): FileStamp => ({
  inode: ino,
  bytes: size,
  writtenAt: mtimeMs,
  seenAt: Date.now(),
});

/**
 * Returns the stamp of a file; undefined if the file does not exist or is not a regular file. Links are not followed.
 */
export const stampAt = (path: string): FileStamp | undefined => {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isFile() === true ? stampOf(stats) : undefined;
  } catch {
    return undefined;
  }
};

/** Whether the content that was read at the time of the stamp `then` is still current. */
export const isUnchanged = (then: FileStamp | undefined, now: FileStamp | undefined): boolean =>
  then === undefined || now === undefined
    ? then === now
    : then.inode === now.inode &&
      then.bytes === now.bytes &&
      then.writtenAt === now.writtenAt &&
      Math.abs(then.seenAt - then.writtenAt) > coarseMilliseconds;
