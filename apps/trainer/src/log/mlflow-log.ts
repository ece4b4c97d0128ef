import { existsSync } from "node:fs";
import { join } from "node:path";
import { eachLine, nodeFiles, readBoundedJson, replaceDurably } from "@skein/cli/node";
import { flatJob, type Measurement, metricsFile, type MetricSink, readRunFiles } from "@skein/run-files/node";
import { chunks, MlflowClient, type MlflowEntry, MlflowFault, type MlflowPoint, maxPoints } from "./mlflow-client.ts";
import { mlflowKey } from "./mlflow-names.ts";
import type { MlflowServer } from "./mlflow-server.ts";
import { PointQueue } from "./point-queue.ts";

/** File in the output folder of a run with the run's id on the server. */
const mlflowFile = "mlflow.json";
/** Maximum wait for the server at the end of a run, in milliseconds. */
const lastPatience = 10_000;

export interface MlflowLogInput {
  readonly server: MlflowServer;
  /** Name of the experiment, from the environment variable `MLFLOW_EXPERIMENT_NAME`. Default: the name of the job. */
  readonly experiment?: string | undefined;
  /** Output folder of the run. */
  readonly output: string;
  /** Number of steps completed before this process started; 0 for a new run. */
  readonly firstStep: number;
  readonly job: { readonly name: string };
  readonly note: (line: string) => void;
  /** Pause between attempts to send, in milliseconds, see `QueueInput`. Default: 1000. */
  readonly every?: number | undefined;
}

/** Server, experiment and id of the run on a server, as stored in `mlflow.json`. */
interface KnownRun {
  readonly server: string;
  readonly experiment: string;
  readonly run: string;
}

/**
 * Converts a metrics line to MLflow points: one point per number in the line, with a name such as `train/loss`. Null,
 * which represents a non-finite number in a metrics file, is sent as NaN.
 */
export const pointsOf = ({ type, step, ...quantities }: Measurement, timestamp: number): MlflowPoint[] =>
  type === "checkpoint" || type === "histograms"
    ? []
    : Object.entries(quantities).flatMap(([name, found]) => {
        const value = (found as number | string | null) ?? Number.NaN;
        return typeof value === "number"
          ? [{ key: mlflowKey(`${groupOf(type)}/${name}`), value, step, timestamp }]
          : [];
      });

const groupOf = (type: string): string => (type === "evaluation" ? "test" : type.startsWith("rank-") ? type : "train");

/** Converts the options of a job to MLflow parameters. */
export const parametersOf = (job: object): MlflowEntry[] =>
  Object.entries(flatJob(job)).map(([key, value]) => ({ key, value: value === "" ? '""' : value }));

/**
 * Sends the metrics of a run to an MLflow server during training. A server that is down, is slow or rejects requests
 * does not affect the run, because `metrics.jsonl` contains all metrics, and `skein-train log` can send the metrics
 * later.
 *
 * A resumed run continues the run on the server that is named in `mlflow.json`. Metrics of repeated steps are not sent
 * again, because they are equal. If a killed run did not send the metrics of its last steps, they are sent from
 * `metrics.jsonl` when the run resumes.
 */
export class MlflowLog implements Pick<MetricSink, "record" | "rewind"> {
  private readonly input: MlflowLogInput;
  private readonly client: MlflowClient;
  private readonly queue: PointQueue;
  private readonly beganAt: number = Date.now();
  private sent = 0;
  private known: KnownRun | undefined;
  private isReady = false;
  /** Last step of each metric on the server when this run resumed, by metric name. */
  private there: ReadonlyMap<string, number> = new Map();
  /** Last recorded step of each metric, by metric name. */
  private readonly recorded = new Map<string, number>();
  /** Last recorded step of each metric when the run last returned to a checkpoint, by metric name. */
  private before: ReadonlyMap<string, number> = new Map();

  constructor(input: MlflowLogInput) {
    this.input = input;
    this.client = new MlflowClient(input.server);
    this.queue = new PointQueue({
      send: async (points) => {
        const run = await this.run();
        const fresh = laterThan(this.there, points);
        if (fresh.length > 0) await this.client.logPoints(run, fresh);
        this.sent += points.length;
      },
      note: (line) => input.note(`mlflow: ${line}; the run continues`),
      ...(input.every !== undefined && { every: input.every }),
    });
  }

  record(measurement: Measurement): void {
    const points = laterThan(this.before, pointsOf(measurement, Date.now()));
    for (const { key, step } of points) this.recorded.set(key, step);
    this.queue.add(points);
  }

  rewind(): void {
    this.before = new Map(this.recorded);
  }

  /** Sends the remaining points, and the status of the run. */
  async end(how: "finished" | "stopped" | "failed"): Promise<void> {
    await this.queue.end(lastPatience);
    const { lost, fault } = this.queue;
    const { note, output } = this.input;
    const statusFault = await this.sendStatus(how);
    if (lost > 0)
      note(
        `mlflow: ${lost} of ${lost + this.sent} points were lost (${fault?.message ?? "the server is too slow"}); all are in metrics.jsonl: skein-train log ${output} --to mlflow`,
      );
    else if (statusFault !== undefined)
      note(
        `mlflow: the server has all points, but its status of the run could not be set and is still running (${statusFault})`,
      );
  }

  /** Sends the status of the run. @returns the reason if the status could not be sent. */
  private async sendStatus(how: "finished" | "stopped" | "failed"): Promise<string | undefined> {
    if (this.known === undefined) return undefined;
    const status = ({ finished: "FINISHED", stopped: "KILLED", failed: "FAILED" } as const)[how];
    try {
      await this.client.update(this.known.run, status, Date.now());
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Returns the id of the run on the server. The first call finds or creates the run. */
  private async run(): Promise<string> {
    if (this.known !== undefined && this.isReady) return this.known.run;
    const { server, output, job, note } = this.input;
    const path = join(output, mlflowFile);
    const before = this.known ?? readKnown(path);
    const there = before?.server === server.address ? await this.client.readRun(before.run) : undefined;
    if (there === undefined && before?.server === server.address)
      note(`mlflow: ${server.address} no longer has run ${before.run}; a new run gets the metrics from here on`);
    if (there === undefined) {
      const experiment = this.input.experiment ?? job.name;
      const run = await this.client.createRun(
        await this.client.experiment(experiment),
        job.name,
        this.beganAt,
        await tagsOf(output),
      );
      this.known = { server: server.address, experiment, run };
      replaceDurably(nodeFiles, path, `${JSON.stringify(this.known)}\n`);
    } else {
      this.known = before!;
      await this.client.update(before!.run, "RUNNING");
      this.there = there.steps;
      await this.sendUnsent(before!.run);
    }
    await this.sendParameters(this.known.run, there?.parameters ?? new Set());
    this.isReady = true;
    return this.known.run;
  }

  /** Sends recorded points that a killed run did not send. */
  private async sendUnsent(run: string): Promise<void> {
    const { output, firstStep } = this.input;
    const path = join(output, metricsFile);
    const unsent: MlflowPoint[] = [];
    if (firstStep > 0 && existsSync(path))
      eachLine(path, (line) => {
        const measurement = JSON.parse(line.toString()) as Measurement;
        if (measurement.step <= firstStep) unsent.push(...laterThan(this.there, pointsOf(measurement, this.beganAt)));
      });
    for (const points of chunks(unsent, maxPoints)) await this.client.logPoints(run, points);
  }

  /**
   * Sends the job's parameters. If the server rejects the parameters, reports the error, and metrics are sent without
   * parameters.
   */
  private async sendParameters(run: string, there: ReadonlySet<string>): Promise<void> {
    try {
      await this.client.logParameters(run, parametersOf(this.input.job), there);
    } catch (error) {
      if (!(error instanceof MlflowFault && error.isLasting)) throw error;
      this.input.note(
        `mlflow: the server does not have the options of the job, because ${error.message}; metrics continue`,
      );
    }
  }
}

/** Returns the points that are newer than the last step of their metric in `steps`. */
const laterThan = (steps: ReadonlyMap<string, number>, points: readonly MlflowPoint[]): MlflowPoint[] =>
  points.filter(({ key, step }) => step > (steps.get(key) ?? -Infinity));

/**
 * Returns the MLflow tags that describe the source of a run: the name of this program and, if known, the git commit.
 */
export const tagsOf = async (folder: string): Promise<MlflowEntry[]> => {
  const { provenance } = await readRunFiles(folder);
  const commit = (provenance?.["git"] as { readonly commit?: unknown } | undefined)?.commit;
  return [
    { key: "mlflow.source.name", value: "skein-train" },
    { key: "mlflow.source.type", value: "LOCAL" },
    ...(typeof commit === "string" ? [{ key: "mlflow.source.git.commit", value: commit }] : []),
  ];
};

const readKnown = (path: string): KnownRun | undefined => {
  try {
    const { server, experiment, run } = readBoundedJson(path) as Partial<Record<keyof KnownRun, unknown>>;
    return typeof server === "string" && typeof experiment === "string" && typeof run === "string"
      ? { server, experiment, run }
      : undefined;
  } catch {
    return undefined; // the file does not exist yet
  }
};
