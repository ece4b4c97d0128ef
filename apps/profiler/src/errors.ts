import { describeError } from "skein-train/profiling";
import { asTyped } from "./own-command.ts";

/** Exit codes: 2 for what the caller got wrong, 1 for all else, 130 after Ctrl-C, 128 + n after another signal. */
export const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/**
 * What a person is told of a failure: a line where it is theirs or the surroundings', a stack trace where it is a bug.
 */
export const explain = (error: unknown): { readonly text: string; readonly code: number } => {
  const { kind, message, stack } = describeError(error);
  if (kind === "invariant") return { text: `internal error: ${stack}`, code: exitCodes.failure };
  return { text: asTyped(message), code: kind === "user" ? exitCodes.usage : exitCodes.failure };
};
