import { existsSync } from "node:fs";
import { join } from "node:path";
import { runPage } from "@skein/report";
import { ConfigError, exitCodes, explainFullExport } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import { metricsFile } from "../run-files/metrics.ts";
import { recordedJob } from "../output-folder/output-folder.ts";
import { requireReplaceable } from "../files/places.ts";
import type { GlobalOptions } from "../command-line/run-options.ts";
import { readHistograms } from "../run-files/read-histograms.ts";
import { originOf } from "../provenance/origin.ts";
import { readMetricLines } from "../run-files/metric-lines.ts";
import { runReportOf } from "./run-report-of.ts";
import { writeStdout } from "../console/terminal.ts";

export interface ReportOptions extends GlobalOptions {
  /** Path of the report. Default: `report.html` in the folder of the run. */
  readonly output?: string;
}

/**
 * Implements `skein-train report`: writes an HTML page about a run from its metrics, during training or afterwards.
 *
 * @returns the exit code.
 * @throws CheckpointError if the folder contains no run, ConfigError if the run has no metrics or the page cannot be
 * written.
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
