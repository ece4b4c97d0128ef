import { ArgumentError } from "@skein/tensor-core";
import { printable } from "../terminal/display-width.ts";

/** Say in one line why a trace cannot be read. What it quotes of the file cannot move a cursor. */
export const traceError = (path: string, problem: string): ArgumentError =>
  new ArgumentError(
    printable(
      `${path}: ${problem}; name the trace.json of a profile, or what a run of skein-train has written with --trace`,
    ),
  );
