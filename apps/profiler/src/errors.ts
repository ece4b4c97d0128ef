import { SkeinError } from "@skein/tensor-core";
import { asTyped } from "./own-command.ts";

/** Exit codes: 2 for what the caller got wrong, 1 for all else, 130 after Ctrl-C, 128 + n after another signal. */
export const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/**
 * What a person is told of a failure: a line where it is theirs or the surroundings', a stack trace where it is a bug.
 */
export const explain = (error: unknown): { readonly text: string; readonly code: number } => {
  if (error instanceof SkeinError && error.kind !== "invariant")
    return { text: asTyped(error.message), code: error.kind === "user" ? exitCodes.usage : exitCodes.failure };
  return {
    text: `internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    code: exitCodes.failure,
  };
};
