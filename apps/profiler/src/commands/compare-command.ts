import { readTextFile } from "@skein/collectives/files";
import { parseReport, type ProfileReport } from "@skein/report";
import { ArgumentError } from "@skein/tensor-core";
import { comparisonLines } from "../compare/comparison-lines.ts";
import { exitCodes } from "../errors.ts";
import { writeStdout } from "skein-train/profiling";

/** Maximum size of a report file, in bytes. A report of a thousand operators has about one megabyte. */
const maxReportBytes = 2 ** 28;

const reportOf = (path: string): ProfileReport => {
  let text: string;
  try {
    text = readTextFile(path, maxReportBytes).text;
  } catch (error) {
    throw new ArgumentError(
      `${path} cannot be read (${error instanceof Error ? error.message : String(error)}); give the report.json of a profile`,
    );
  }
  return parseReport(text, path);
};

/** Implements `skein-profile compare`: prints the statistically significant differences between two reports. */
export const compareCommand = (before: string, after: string): number => {
  for (const line of comparisonLines(reportOf(before), reportOf(after), process.stdout.columns))
    writeStdout(`${line}\n`);
  return exitCodes.ok;
};
