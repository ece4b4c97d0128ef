import { ArgumentError } from "@skein/tensor-core";
import { type ReadTrace, parseTrace } from "./parse-trace.ts";
import { readLines } from "./read-lines.ts";

/**
 * Read a trace that skein-train or skein-profile has written, also one that was cut off.
 *
 * @throws ArgumentError in one line.
 */
export const readTrace = (path: string): ReadTrace => {
  try {
    return parseTrace(readLines(path), path);
  } catch (error) {
    // What the file system says has a code.
    if (!(error instanceof RangeError || (error instanceof Error && "syscall" in error))) throw error;
    throw new ArgumentError(`${path} cannot be read (${error.message}); name a trace that you may read`);
  }
};
