import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  ConfigError,
  exitCodes,
  explainFullExport,
  type GlobalOptions,
  nodeFiles,
  replaceDurably,
  requireReplaceable,
  writeStdout,
} from "@skein/cli/node";
import { runPage } from "@skein/report";
import { metricsFile, originOf, readHistograms, readMetricLines } from "@skein/run-files/node";
import { recordedJob } from "../output-folder/output-folder.ts";
import { runReportOf } from "./run-report-of.ts";

export interface ReportOptions extends GlobalOptions {
  /** Path of the report. Default: `report.html` in the folder of the run. */
  readonly output?: string;
}

/**
 * Implements `skein-train report`: writes an HTML page about a run from its metrics, during training or afterwards.
 *
 * @returns the exit code.
 * @throws CheckpointError if the folder contains no run; ConfigError if the run has no metrics, or if the page cannot
 * be written.
 */
export const reportCommand = async (folder: string, options: ReportOptions): Promise<number> => {
  const job = recordedJob(folder);
  const metrics = join(folder, metricsFile);
  if (!existsSync(metrics))
    throw new ConfigError([
      `${metrics} does not exist, so nothing is known about the run; name the folder of another run`,
    ]);
  const report = {
    ...runReportOf(job, readMetricLines(metrics)),
    origin: await originOf(folder),
    histograms: readHistograms(folder).shown ?? undefined,
  };
  const output = options.output ?? join(folder, "report.html");
  requireReplaceable(output, "--output");
  try {
    replaceDurably(nodeFiles, output, runPage(report));
  } catch (error) {
    throw explainFullExport(error, output);
  }
  writeStdout(options.json === true ? `${JSON.stringify({ report: output })}\n` : `written to ${output}\n`);
  return exitCodes.ok;
};
