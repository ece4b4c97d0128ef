import { ArgumentError } from "@skein/tensor-core";
import { printable } from "../terminal/display-width.ts";

/**
 * Creates a one-line error about a trace that cannot be read. Control characters in quoted text from the file are
 * replaced.
 */
export const traceError = (path: string, problem: string): ArgumentError =>
  new ArgumentError(
    printable(`${path}: ${problem}; give the trace.json of a profile, or a file written by skein-train run --trace`),
  );
