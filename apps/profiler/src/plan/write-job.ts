import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ArgumentError } from "@skein/tensor-core";
import { parseDocument } from "yaml";
import type { Settings } from "../predict/candidates.ts";

/**
 * Checks that a changed job can be written to `target`: a new file in the folder of job `file`, because paths in a job
 * are relative to the job's file.
 *
 * @throws ArgumentError with a one-line message if `target` exists or is in another folder.
 */
export const requireNewJob = (file: string, target: string): void => {
  if (existsSync(target))
    throw new ArgumentError(`--apply ${target}: the file exists; name a new file, so that nothing is overwritten`);
  if (dirname(resolve(target)) !== dirname(resolve(file)))
    throw new ArgumentError(
      `--apply ${target}: paths in a job are relative to its file, so the new file must be in the same folder; name a file in ${dirname(file)}, next to ${file}`,
    );
};

/**
 * Writes a job file with changed settings (`a.b` is key b within a). Comments and all other settings are unchanged.
 *
 * @param note First line of the new file.
 */
export const writeJob = (file: string, target: string, settings: Settings, note: string): void => {
  requireNewJob(file, target);
  const document = parseDocument(readFileSync(file, "utf8"));
  for (const [key, value] of Object.entries(settings)) document.setIn(key.split("."), document.createNode(value));
  document.commentBefore = [` ${note}`, document.commentBefore]
    .filter((line) => line !== null && line !== undefined)
    .join("\n");
  writeFileSync(target, String(document), { flag: "wx" });
};
