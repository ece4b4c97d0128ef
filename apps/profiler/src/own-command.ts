import { asTypedInProgram } from "skein-train/profiling";

/** Names of this program's commands as they appear in messages. */
export const commandNames: readonly string[] = [
  "run",
  "report",
  "links",
  "calibrate",
  "predict",
  "plan",
  "compare",
  "model",
  "shaders",
];

/**
 * Replaces the names of this program and of skein-train in a message by the commands with which the user can start
 * these programs.
 */
export const asTyped = (text: string): string => asTypedInProgram("skein-profile", commandNames, text);
