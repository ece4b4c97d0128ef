import { asTypedIn } from "skein-train/profiling";

/** Commands of this program, which messages name. */
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

/** A message with the words that start this program, or skein-train, as they were typed, in place of their names. */
export const asTyped = (text: string): string => asTypedIn("skein-profile", commandNames, text);
