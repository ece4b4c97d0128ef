import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { syncOrPooled } from "./quick-reader.ts";

/** File metadata as text. The text changes when the content of the file changes. */
export interface FileStamp {
  readonly text: string;
  /** Whether the next change of the file is certain to change the stamp. */
  readonly isSettled: boolean;
}

/**
 * Maximum age in milliseconds of a file that may change without a new stamp. Two writes within one tick of the file
 * system's clock may have the same timestamp, so a file with a recent or future timestamp may change without a new
 * stamp. A tick is at most 2 seconds (FAT). Git calls such files racy and also treats them as changed.
 */
const unsettledMilliseconds = 2000;

const quickly = syncOrPooled();

/**
 * Returns the stamp of a file: size, timestamps and inode. The change time (ctime, in nanoseconds) is included, because
 * tools may reset the modification time (`touch -r`, `rsync -t`). The change time also changes when read permission is
 * changed.
 *
 * @returns undefined if the file has no metadata.
 */
export const fileStamp = async (path: string): Promise<FileStamp | undefined> => {
  const now = Date.now(); // before the metadata and the content are read
  try {
    const { size, mtimeNs, ctimeNs, ino } = await quickly(
      () => statSync(path, { bigint: true }),
      () => stat(path, { bigint: true }),
    );
    const newest = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
    return {
      text: `${size} ${mtimeNs} ${ctimeNs} ${ino}`,
      isSettled: newest < BigInt(now - unsettledMilliseconds) * 1_000_000n,
    };
  } catch {
    return undefined;
  }
};
