import { parseTrace, type ReadTrace, traceFacts } from "@skein/report";
import { ArgumentError } from "@skein/tensor-core";
import { exchangePlanSchema, type TraceFacts } from "skein-train/profiling";
import { z } from "zod";
import { readLines } from "./read-lines.ts";

/** Schema of a run's properties in traces written by skein-train and skein-profile. */
export const runTraceFacts: z.ZodType<TraceFacts> = z.intersection(
  traceFacts,
  z.object({ plan: exchangePlanSchema.optional() }),
);

/**
 * Reads a trace written by skein-train or skein-profile. The end of the trace may be missing.
 *
 * @throws ArgumentError with a one-line message if the trace cannot be read.
 */
export const readTrace = (path: string): ReadTrace<TraceFacts> => {
  try {
    return parseTrace(readLines(path), runTraceFacts, path);
  } catch (error) {
    // Errors of the file system have the property `syscall`.
    if (!(error instanceof RangeError || (error instanceof Error && "syscall" in error))) throw error;
    throw new ArgumentError(`${path} cannot be read (${error.message}); give a readable trace`);
  }
};
