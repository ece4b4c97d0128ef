import { describeError } from "skein-train/profiling";
import { asTyped } from "./own-command.ts";

/** Exit codes: 2 for user errors, 1 for other failures, 130 after Ctrl-C, 128 + n after another signal. */
export const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/**
 * Returns the text and the exit code for a failure: one line for an error of the user or the environment, a stack trace
 * for a bug.
 */
export const explain = (error: unknown): { readonly text: string; readonly code: number } => {
  const { kind, message, stack } = describeError(error);
  if (kind === "invariant") return { text: `internal error: ${stack}`, code: exitCodes.failure };
  return { text: asTyped(message), code: kind === "user" ? exitCodes.usage : exitCodes.failure };
};
