import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { differencesOf, flatSettings } from "@skein/checkpoints/node";
import { describeError } from "@skein/cli/node";
import { provenanceFile, type SavedStart, savedStarts } from "@skein/run-files/node";
import { readJob } from "../job-file/load-job.ts";
import { jobFile, recordedJob } from "./output-folder.ts";

/**
 * Returns the first start of a run with `skein-train run`, and the path of the job file in the command. Undefined: no
 * such start, or the command names no job file.
 */
const startOf = (output: string): { readonly file: string; readonly start: SavedStart } | undefined => {
  const start = savedStarts(join(output, provenanceFile)).find(({ command }) => command?.[0] === "run");
  const named = start?.command?.slice(1).find((word) => /\.(ya?ml|json)$/.test(word) && !word.includes("="));
  return named === undefined ? undefined : { file: resolve(start?.folder ?? ".", named), start: start! };
};

/** Returns the job keys that a command sets, with `--set key=value` or with an option of the same name. */
const keysIn = (command: readonly string[]): readonly string[] =>
  command.flatMap((word) => {
    const [, option] = /^--([a-z][\w-]*)(?:=|$)/.exec(word) ?? [];
    const [, key] = /^([A-Za-z][\w.]*)=/.exec(word) ?? [];
    return [option, key].filter((each) => each !== undefined);
  });

/**
 * Returns a warning for the user if the job file was edited after the run began and now differs from the run's own copy
 * of the job, which a resumed run uses. Settings from the command line, and settings that are chosen when a run begins,
 * are not compared. Undefined: the file was not edited, or the jobs are equal.
 */
export const editedJobLine = (output: string): string | undefined => {
  const found = startOf(output);
  if (found === undefined) return undefined;
  const { file, start } = found;
  const edited = statSync(file, { throwIfNoEntry: false })?.mtime;
  if (edited === undefined || !(edited > new Date(start.startedAt ?? Number.NaN))) return undefined;
  const copy = join(output, jobFile);
  try {
    const given = ["backend", "name", ...keysIn(start.command ?? [])];
    const compared = (job: object): Record<string, string> =>
      Object.fromEntries(
        Object.entries(flatSettings({ ...job })).filter(
          ([key]) => !key.endsWith(".digest") && !given.some((each) => key === each || key.startsWith(`${each}.`)),
        ),
      );
    const differences = differencesOf(compared(recordedJob(output)), compared(readJob(file)));
    return differences === ""
      ? undefined
      : `${file} was edited after the run began${differences}, but a run resumes with ${copy}; change it with --set key=value, or start a new run`;
  } catch (error) {
    return `${file} was edited after the run began and cannot be compared with ${copy}, with which the run resumes: ${describeError(error).message}`;
  }
};
