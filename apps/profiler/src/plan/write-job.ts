import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ArgumentError } from "@skein/tensor-core";
import { parseDocument } from "yaml";
import type { Settings } from "../predict/candidates.ts";

/** Look whether a changed job can be written to `target`. @throws ArgumentError in one line. */
export const requireNewJob = (file: string, target: string): void => {
  if (existsSync(target))
    throw new ArgumentError(`--apply ${target}: the file is there already; name a new one, so that nothing is lost`);
  if (dirname(resolve(target)) !== dirname(resolve(file)))
    throw new ArgumentError(
      `--apply ${target}: paths in a job are seen from its file; name a file in ${dirname(file)}, beside ${file}`,
    );
};

/**
 * Write a job file with other settings (`a.b` is b within a), its comments and all else as they were.
 *
 * @param note the first line of the new file.
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
