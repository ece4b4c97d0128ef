import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nodeFiles, replaceDurably } from "../checkpoint/files.ts";
import { flatJob } from "../watch/flat-job.ts";
import type { Measurement } from "../run/metrics.ts";
import { readRunFiles } from "../watch/run-files.ts";
import { MlflowClient, type MlflowEntry, mlflowKey, type MlflowPoint, type MlflowServer } from "./mlflow-client.ts";
import { PointQueue } from "./point-queue.ts";

/** In the output folder of a run: which run of a server has its metrics. */
const mlflowFile = "mlflow.json";
/** What the end of a run waits for a server, milliseconds. */
const lastPatience = 10_000;

export interface MlflowLogInput {
  readonly server: MlflowServer;
  /** The environment variable `MLFLOW_EXPERIMENT_NAME`. Default: the name of the job. */
  readonly experiment?: string | undefined;
  /** Folder of the run. */
  readonly output: string;
  readonly job: { readonly name: string };
  /** Whether the run goes on: then with the run that the server has of it, if that is known. */
  readonly goesOn: boolean;
  readonly note: (line: string) => void;
  /** See `PointQueue`. */
  readonly every?: number | undefined;
}

/** What is known of the run on a server. */
interface Known {
  readonly server: string;
  readonly experiment: string;
  readonly run: string;
}

/** Points of a line of metrics: numbers, by names such as `train/loss`. */
export const pointsOf = ({ type, step, ...quantities }: Measurement, timestamp: number): MlflowPoint[] =>
  type === "checkpoint" || type === "histograms"
    ? []
    : Object.entries(quantities).flatMap(([name, value]) =>
        typeof value === "number" && Number.isFinite(value)
          ? [{ key: mlflowKey(`${groupOf(type)}/${name}`), value, step, timestamp }]
          : [],
      );

const groupOf = (type: string): string => (type === "evaluation" ? "test" : type.startsWith("rank-") ? type : "train");

/** Options of a job as parameters of a run. */
export const parametersOf = (job: object): MlflowEntry[] =>
  Object.entries(flatJob(job)).map(([key, value]) => ({ key, value: value === "" ? '""' : value }));

/**
 * Sends the metrics of a run to a server of MLflow while it trains. A server that is down, slow, or refuses changes
 * nothing of the run: `metrics.jsonl` has all, and `skein-train log` sends it later.
 */
export class MlflowLog {
  private readonly input: MlflowLogInput;
  private readonly client: MlflowClient;
  private readonly queue: PointQueue;
  private readonly beganAt: number = Date.now();
  private sent = 0;
  private known: Known | undefined;
  private hasParameters = false;

  constructor(input: MlflowLogInput) {
    this.input = input;
    this.client = new MlflowClient(input.server);
    this.queue = new PointQueue({
      send: async (points) => {
        await this.client.logPoints(await this.run(), points);
        this.sent += points.length;
      },
      note: (line) => input.note(`mlflow: ${line}; the run goes on`),
      ...(input.every !== undefined && { every: input.every }),
    });
  }

  record(measurement: Measurement): void {
    this.queue.add(pointsOf(measurement, Date.now()));
  }

  /** Send what is left, and say what became of the run. */
  async end(how: "finished" | "stopped" | "failed"): Promise<void> {
    await this.queue.end(lastPatience);
    const { lost, fault } = this.queue;
    const { note, output } = this.input;
    try {
      if (this.known !== undefined)
        await this.client.update(
          this.known.run,
          ({ finished: "FINISHED", stopped: "KILLED", failed: "FAILED" } as const)[how],
          Date.now(),
        );
    } catch {
      // told by what was lost, or of no account
    }
    if (lost > 0)
      note(
        `mlflow: ${lost} of ${lost + this.sent} points were lost (${fault?.message ?? "the server is too slow"}); all are in metrics.jsonl: skein-train log ${output} --to mlflow`,
      );
  }

  /** The run of the server, made when it is first needed. */
  private async run(): Promise<string> {
    if (this.known !== undefined && this.hasParameters) return this.known.run;
    const { server, output, job, goesOn } = this.input;
    const path = join(output, mlflowFile);
    const before = this.known ?? (goesOn ? readKnown(path) : undefined);
    const name = this.input.experiment ?? job.name;
    const known =
      before?.server === server.address
        ? before
        : {
            server: server.address,
            experiment: name,
            run: await this.client.createRun(
              await this.client.experiment(name),
              job.name,
              this.beganAt,
              await tagsOf(output),
            ),
          };
    if (known === before) await this.client.update(known.run, "RUNNING");
    else replaceDurably(nodeFiles, path, `${JSON.stringify(known)}\n`);
    this.known = known; // a later try goes on with it
    // Parameters never change on a server: what a run that goes on has set otherwise stays as it was first told.
    if (!goesOn || known !== before) await this.client.logParameters(known.run, parametersOf(job));
    this.hasParameters = true;
    return known.run;
  }
}

/** Where a run comes from, in tags that MLflow's own page shows. */
export const tagsOf = async (folder: string): Promise<MlflowEntry[]> => {
  const { provenance } = await readRunFiles(folder);
  const commit = (provenance?.["git"] as { readonly commit?: unknown } | undefined)?.commit;
  return [
    { key: "mlflow.source.name", value: "skein-train" },
    { key: "mlflow.source.type", value: "LOCAL" },
    ...(typeof commit === "string" ? [{ key: "mlflow.source.git.commit", value: commit }] : []),
  ];
};

const readKnown = (path: string): Known | undefined => {
  try {
    const { server, experiment, run } = JSON.parse(readFileSync(path, "utf8")) as Partial<Record<keyof Known, unknown>>;
    return typeof server === "string" && typeof experiment === "string" && typeof run === "string"
      ? { server, experiment, run }
      : undefined;
  } catch {
    return undefined; // none yet
  }
};
