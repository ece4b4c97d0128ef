import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { commandAction, ConfigError, exitCodes, type GlobalOptions, RunError, writeStdout } from "@skein/cli/node";
import { type Measurement, metricsFile, readMetricLines, readRunFiles } from "@skein/run-files/node";
import type { Command } from "commander";
import { recordedJob } from "../output-folder/output-folder.ts";
import { logTargetOf } from "./log-target.ts";
import { chunks, MlflowClient, MlflowFault, type MlflowPoint, maxPoints } from "./mlflow-client.ts";
import { parametersOf, pointsOf, tagsOf } from "./mlflow-log.ts";

export interface LogOptions extends GlobalOptions {
  readonly to: string;
}

/**
 * Converts metrics lines to MLflow points with estimated times. Metrics lines contain no times, so the time of a line
 * is estimated as the start time of the run plus the durations of the completed steps.
 */
const withTimes = (lines: readonly Measurement[], startedAt: number): MlflowPoint[] => {
  let milliseconds = startedAt;
  return lines.flatMap((line) => {
    if (line.type === "step" && typeof line["seconds"] === "number") milliseconds += 1000 * line["seconds"];
    return pointsOf(line, Math.round(milliseconds));
  });
};

const statusOf = (how: unknown): "FINISHED" | "KILLED" | "FAILED" | "RUNNING" =>
  how === "finished" ? "FINISHED" : how === "stopped" ? "KILLED" : how === "failed" ? "FAILED" : "RUNNING";

/**
 * Implements `skein-train log`: sends the metrics of a run to a server, as a new run on that server, during training or
 * afterwards.
 *
 * @returns the exit code.
 * @throws CheckpointError if the folder contains no run; ConfigError if the run has no metrics, or if no server is
 * given; RunError if the server rejects the metrics.
 */
const logCommand = async (folder: string, { to, json = false }: LogOptions): Promise<number> => {
  const target = logTargetOf(to, process.env, "--to");
  if (target === undefined)
    throw new ConfigError([
      `--to ${to}: every run writes TensorBoard event files already: tensorboard --logdir ${folder}`,
    ]);
  const job = recordedJob(folder);
  const metrics = join(folder, metricsFile);
  if (!existsSync(metrics))
    throw new ConfigError([
      `${metrics} does not exist, so nothing is known about the run; name the folder of another run`,
    ]);
  const { provenance } = await readRunFiles(folder);
  const starts = provenance?.["startedAt"];
  const startedAt = typeof starts === "string" && !Number.isNaN(Date.parse(starts)) ? Date.parse(starts) : Date.now();
  const points = withTimes(readMetricLines(metrics) as unknown as Measurement[], startedAt);
  const client = new MlflowClient(target.server);
  const experiment = target.experiment ?? job.name;
  let run: string;
  try {
    const name = `${job.name}-${basename(resolve(folder))}`;
    run = await client.createRun(await client.experiment(experiment), name, startedAt, await tagsOf(folder));
    await client.logParameters(run, parametersOf(job), new Set());
    for (const some of chunks(points, maxPoints)) await client.logPoints(run, some);
    const ended = (provenance?.["ended"] as { readonly how?: unknown } | undefined)?.how;
    await client.update(run, statusOf(ended), ...(ended === undefined ? [] : [points.at(-1)?.timestamp ?? startedAt]));
  } catch (error) {
    if (!(error instanceof MlflowFault)) throw error;
    throw new RunError("log-server", `mlflow: ${error.message}; check that the server is running, and send again`);
  }
  writeStdout(
    json
      ? `${JSON.stringify({ to, server: target.server.address, experiment, run, points: points.length })}\n`
      : `${points.length} points sent to ${target.server.address}: experiment ${experiment}, run ${run}\n`,
  );
  return exitCodes.ok;
};

/**
 * Adds `skein-train log` to the command line.
 * @param finish receives the exit code.
 */
export const addLogCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("log")
    .description("send all metrics of a run to a server, as a new run there")
    .argument("<folder>", "output folder of the run")
    .requiredOption("--to <server>", "mlflow: the server of MLFLOW_TRACKING_URI")
    .addHelpText("after", "\nExample:\n  skein-train log runs/mnist/1 --to mlflow")
    .action(commandAction(finish, logCommand));
};
