import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { quickOrAside } from "./quick-reader.ts";

/** What the system says of a file: whoever changes what it holds changes this. */
export interface FileStamp {
  readonly text: string;
  /** Whether the next change is certain to change it. */
  readonly isSettled: boolean;
}

/**
 * A file that is written twice within one tick of the file system's clock may have one time for both, so what was
 * written just now, or by that clock will be, may change yet without a sign. Ticks are 2 seconds long at most (FAT);
 * Git treats such files, which it calls racy, as changed, too.
 */
const unsettledMilliseconds = 2000;

const quickly = quickOrAside();

/**
 * The stamp of a file: size, times and inode. The time of change to a nanosecond is there beside that of the content,
 * which people set back (`touch -r`, `rsync -t`); it moves with the right to read the file, too.
 *
 * @returns undefined where the system says nothing of it.
 */
export const fileStamp = async (path: string): Promise<FileStamp | undefined> => {
  const now = Date.now(); // before the question, and what is read after it
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
