import { ArgumentError } from "@skein/tensor-core";
import { printable } from "../terminal/display-width.ts";

/** A one-line error about a trace that cannot be read. Quoted text from the file has no control characters. */
export const traceError = (path: string, problem: string): ArgumentError =>
  new ArgumentError(
    printable(`${path}: ${problem}; give the trace.json of a profile, or a file written by skein-train run --trace`),
  );
