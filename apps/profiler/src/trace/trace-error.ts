import { ArgumentError } from "@skein/tensor-core";

/** Say in one line why a trace cannot be read. */
export const traceError = (path: string, problem: string): ArgumentError =>
  new ArgumentError(
    `${path}: ${problem}; name a file that skein-train run --trace or skein-profile run has written`.replaceAll(/\s+/g, " "),
  );
