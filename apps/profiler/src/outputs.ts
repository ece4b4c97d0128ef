import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { csvOf, type ProfileReport, reportPage, terminalReport } from "@skein/report";
import { ArgumentError } from "@skein/tensor-core";
import { makeFolders, writeChromeTrace, writeStderr, writeStdout } from "skein-train/profiling";
import type { MeasuredJob } from "./profile/measure-job.ts";

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Creates the folder of a report before the job runs: the requested folder, which must be empty, or
 * `profiles/<job>/<1, 2, …>`.
 *
 * @throws ArgumentError if the folder is not empty or cannot be created.
 */
export const claimFolder = (job: string, asked: string | undefined): string => {
  try {
    if (asked !== undefined) {
      makeFolders(asked);
      if (readdirSync(asked).length > 0)
        throw new ArgumentError(
          `--output ${asked}: the folder is not empty; name a new folder, so that no report is overwritten`,
        );
      return asked;
    }
    const above = join("profiles", job);
    makeFolders(above);
    for (let number = 1; ; number++) {
      const path = join(above, String(number));
      try {
        mkdirSync(path); // throws if the folder exists
        return path;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
  } catch (error) {
    if (error instanceof ArgumentError) throw error;
    throw new ArgumentError(
      `the report cannot be written (${reason(error)}); name a writable folder with --output <folder>`,
    );
  }
};

/** Removes the folder of a report that was not written, unless the folder has files. */
export const dropUnused = (folder: string): void => {
  if (readdirSync(folder).length === 0) rmdirSync(folder);
};

/** Writes all output files of a report, and prints the report. */
export const writeReport = (
  folder: string,
  report: ProfileReport,
  { ranks, plan }: Pick<MeasuredJob, "ranks" | "plan">,
  { json, columns = 80 }: { readonly json: boolean; readonly columns?: number | undefined },
): void => {
  const text = JSON.stringify(report);
  const csv = csvOf(report);
  writeFileSync(join(folder, "report.json"), `${text}\n`);
  writeFileSync(join(folder, "report.html"), reportPage(report));
  writeFileSync(join(folder, "operators.csv"), csv.operators);
  writeFileSync(join(folder, "collectives.csv"), csv.collectives);
  const { job, backend, samplesPerStep, madeAt } = report;
  writeChromeTrace(join(folder, "trace.json"), ranks, { job, backend, samplesPerStep, madeAt, plan });
  if (json) writeStdout(`${text}\n`);
  else {
    writeStdout(`${terminalReport(report, { columns })}\n`);
    writeStderr(`open ${join(folder, "report.html")} in a browser; all files are in ${folder}\n`);
  }
};
