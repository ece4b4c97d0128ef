import { parseTrace, type ReadTrace, traceFacts } from "@skein/report";
import { ArgumentError } from "@skein/tensor-core";
import { exchangePlanSchema, type TraceFacts } from "skein-train/profiling";
import { z } from "zod";
import { readLines } from "./read-lines.ts";

/** What traces of ours say of their run. */
export const runTraceFacts: z.ZodType<TraceFacts> = z.intersection(
  traceFacts,
  z.object({ plan: exchangePlanSchema.optional() }),
);

/**
 * Read a trace that skein-train or skein-profile has written, also one that was cut off.
 *
 * @throws ArgumentError in one line.
 */
export const readTrace = (path: string): ReadTrace<TraceFacts> => {
  try {
    return parseTrace(readLines(path), runTraceFacts, path);
  } catch (error) {
    // What the file system says has a code.
    if (!(error instanceof RangeError || (error instanceof Error && "syscall" in error))) throw error;
    throw new ArgumentError(`${path} cannot be read (${error.message}); name a trace that you may read`);
  }
};
