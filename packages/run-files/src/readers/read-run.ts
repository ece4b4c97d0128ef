import { join } from "node:path";
import { type FileStamp, isUnchanged } from "@skein/cli/node";
import { metricsFile } from "../files/run-file-names.ts";
import { readTail, type TailPosition, type TailReading } from "./metric-tail.ts";
import { readRunFiles, type RunFiles, stampsIn } from "./run-files.ts";

/**
 * State of a run after its last read: folder, read position in the metrics, and file stamps. The next read uses this
 * state to detect changes.
 */
export interface KnownRun {
  readonly folder: string;
  readonly place: TailPosition;
  /** Stamps of the files next to the metrics. Undefined: not read yet. */
  readonly stamps: readonly (FileStamp | undefined)[] | undefined;
}

/** Changes of a run since the last read. */
export interface RunReading {
  /** New metrics. Absent: no new metrics. */
  readonly tail?: TailReading;
  /** Reason why the metrics cannot be read. Absent: the metrics can be read. */
  readonly fault?: string;
  /** Whether the metrics file no longer exists. The next search removes the run. */
  readonly isGone?: true;
  /** Contents of the files next to the metrics. Absent: unchanged. */
  readonly beside?: { readonly stamps: readonly (FileStamp | undefined)[]; readonly files: RunFiles };
}

const areUnchanged = (then: KnownRun["stamps"], now: readonly (FileStamp | undefined)[]): boolean =>
  then !== undefined && now.every((stamp, index) => isUnchanged(then[index], stamp));

/**
 * Reads new data of a run: the next bytes of its metrics, and the files next to the metrics if one of them has changed.
 */
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
