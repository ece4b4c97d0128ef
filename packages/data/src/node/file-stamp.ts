import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { syncOrPooled } from "./quick-reader.ts";

/** File metadata that changes whenever the content of the file changes. */
export interface FileStamp {
  readonly text: string;
  /** Whether the next change of the file is certain to change the stamp. */
  readonly isSettled: boolean;
}

/**
 * A file that is written twice within one tick of the file system's clock may have the same time for both writes. A
 * file whose time is recent, or in the future, may therefore still change without a new stamp. A tick is at most 2
 * seconds (FAT). Git treats such files, which it calls racy, as changed, too.
 */
const unsettledMilliseconds = 2000;

const quickly = syncOrPooled();

/**
 * Returns the stamp of a file: size, times and inode. The change time (ctime, nanoseconds) is included because tools
 * set the modification time back (`touch -r`, `rsync -t`). The change time also changes with the permission to read the
 * file.
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
