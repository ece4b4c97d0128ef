import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { ConfigError, describeError, isShortage } from "../errors.ts";
import type { Files } from "../files/files.ts";

const prefix = ".mark-";

/**
 * Leave a file in the output folder of a run by which its other processes know that they see the same folder.
 *
 * @returns the file's name.
 */
export const leaveMark = (files: Files, output: string): string => {
  const mark = `${prefix}${randomUUID()}`;
  files.writeDurably(join(output, mark), [new TextEncoder().encode(mark)]);
  return mark;
};

/**
 * Take a start's own mark away when it has failed. Another start may have left one meanwhile: as where this process was
 * paused, and its cluster has started the job again.
 */
export const removeMark = (files: Files, output: string, mark: string): void => files.remove(join(output, mark));

/** Take all marks away when the run is done, those of starts that were killed too. */
export const removeMarks = (files: Files, output: string): void => {
  for (const name of files.list(output)) if (name.startsWith(prefix)) files.remove(join(output, name));
};

/** Network storage may show a new file late. */
const tries = 10;
const pauseMilliseconds = 300;

/**
 * Check that this process sees the output folder that the controller of the run has marked, and may write there.
 *
 * Each rank writes its part of a checkpoint itself, and reads it when the run is resumed: they do not travel through
 * the controller, whose control connections carry messages and not gigabytes. So a process whose ranks write parts into
 * another folder is refused before the first step, and not at the first checkpoint.
 *
 * @throws ConfigError, or the system's error where it may not write.
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
        `--output ${output}: the process of rank ${ranks.join(", ")} on ${hostname()} does not see the folder that the controller of the run has made; name one on a disk that all machines share, the same path on each`,
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
    if (isShortage(describeError(error))) throw error; // it says nothing of the folder
    return false;
  }
};
