import { join } from "node:path";
import { metricsFile } from "../run-files/run-file-names.ts";
import { type FileStamp, isUnchanged } from "../files/file-stamp.ts";
import { readTail, type TailPlace, type TailReading } from "./metric-tail.ts";
import { readRunFiles, type RunFiles, stampsIn } from "./run-files.ts";

/** What is known of a run when it is looked at once more. */
export interface KnownRun {
  readonly folder: string;
  readonly place: TailPlace;
  /** Of files beside the metrics; undefined before the first look. */
  readonly stamps: readonly (FileStamp | undefined)[] | undefined;
}

/** What has changed of a run. */
export interface RunReading {
  /** Absent: nothing new. */
  readonly tail?: TailReading;
  /** Why the metrics cannot be read. */
  readonly fault?: string;
  /** Whether there are no metrics any more: the next search settles it. */
  readonly isGone?: true;
  /** Absent: nothing new. */
  readonly beside?: { readonly stamps: readonly (FileStamp | undefined)[]; readonly files: RunFiles };
}

const areUnchanged = (then: KnownRun["stamps"], now: readonly (FileStamp | undefined)[]): boolean =>
  then !== undefined && now.every((stamp, index) => isUnchanged(then[index], stamp));

/** Read what is new of a run: a piece of its metrics, and the files beside them where one has changed. */
export const readRun = async ({ folder, place, stamps: before }: KnownRun): Promise<RunReading> => {
  let tail: TailReading | undefined;
  let fault: string | undefined;
  try {
    tail = readTail(join(folder, metricsFile), place);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { isGone: true };
    fault = `${metricsFile} cannot be read: ${(error as Error).message}`;
  }
  const stamps = stampsIn(folder);
  return {
    ...(tail !== undefined && { tail }),
    ...(fault !== undefined && { fault }),
    ...(!areUnchanged(before, stamps) && { beside: { stamps, files: await readRunFiles(folder) } }),
  };
};
