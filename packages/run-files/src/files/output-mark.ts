import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { ConfigError, describeError, type Files, isShortage } from "@skein/cli/node";

const prefix = ".mark-";

/**
 * Writes a mark file into the output folder of a run, with which all other processes of the run check that they see
 * this folder.
 *
 * @returns the name of the mark file.
 */
export const leaveMark = (files: Files, output: string): string => {
  const mark = `${prefix}${randomUUID()}`;
  files.writeDurably(join(output, mark), [new TextEncoder().encode(mark)]);
  return mark;
};

/**
 * Removes the mark file of this process after a failure. Other mark files are not removed, because the cluster may have
 * restarted the job while this process was suspended.
 */
export const removeMark = (files: Files, output: string, mark: string): void => files.remove(join(output, mark));

/** Removes all mark files after the run has ended, including mark files of killed processes. */
export const removeMarks = (files: Files, output: string): void => {
  for (const name of files.list(output)) if (name.startsWith(prefix)) files.remove(join(output, name));
};

/** Maximum number of attempts to read the mark file, because a new file may appear with a delay on network storage. */
const tries = 10;
const pauseMilliseconds = 300;

/**
 * Requires that this process sees the output folder marked by the controller of the run, and may write to it.
 *
 * Each rank writes its own files of each checkpoint, and reads these files when the run is resumed. The files are not
 * sent to the controller, because control connections are designed for small messages. A process whose ranks would
 * write to another folder is therefore rejected before the first step, not at the first checkpoint.
 *
 * @throws ConfigError, or the system's error if the folder is not writable.
 */
export const requireMark = async (
  files: Files,
  output: string,
  mark: string,
  ranks: readonly number[],
): Promise<void> => {
  for (let rest = tries; !seesMark(files, join(output, mark), mark); rest--) {
    if (rest === 1)
      throw new ConfigError([
        `--output ${output}: the process of rank ${ranks.join(", ")} on ${hostname()} does not see the folder that the controller of the run has created; name a folder on a disk that all machines share, with the same path on each machine`,
      ]);
    await new Promise((resolve) => setTimeout(resolve, pauseMilliseconds));
  }
  const own = join(output, `${mark}-${ranks[0]}`);
  files.writeDurably(own, []);
  files.remove(own);
};

const seesMark = (files: Files, path: string, mark: string): boolean => {
  try {
    return new TextDecoder().decode(files.read(path, mark.length)) === mark;
  } catch (error) {
    if (isShortage(describeError(error))) throw error; // the error was not caused by the folder
    return false;
  }
};
