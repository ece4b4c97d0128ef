import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  batchOf,
  entriesOf,
  invalid,
  type Metric,
  missing,
  newParams,
  Refusal,
  requireName,
  requireTime,
  statusOf,
} from "./mlflow-rules.ts";

/** A run as stored by an MLflow server. */
export interface KeptRun {
  readonly experiment: string;
  readonly name: string;
  readonly tags: Record<string, string>;
  readonly params: Record<string, string>;
  /** Metrics in order of arrival; equal points are stored once. */
  readonly metrics: Metric[];
  status: string;
  endTime?: number | undefined;
  isDeleted: boolean;
}

interface KeptExperiment {
  readonly id: string;
  isDeleted: boolean;
}

export interface TestMlflow {
  readonly address: string;
  readonly experiments: Map<string, KeptExperiment>;
  readonly runs: Map<string, KeptRun>;
  /** Paths of the received requests. */
  readonly requests: string[];
  /** HTTP status with which requests are refused. Undefined: requests are accepted. */
  down: number | undefined;
  /** Called with the path of each request before the response. A returned status refuses the request. */
  refuses: ((path: string) => number | undefined) | undefined;
  /** URL to which requests are redirected. Undefined: no redirect. */
  elsewhere: string | undefined;
  /** Whether to process the next request, and then close the connection without a response. */
  losesAnswer: boolean;
  close(): Promise<void>;
}

export interface TestMlflowOptions {
  readonly authorization?: string;
  /** Certificate and key as PEM text. Default: HTTP without TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** Maximum size of a request in bytes, as in typical proxies in front of servers. */
const maxRequestBytes = 1_000_000;

const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const content = Buffer.concat(pieces);
  if (content.length > maxRequestBytes) throw new Refusal(413, "", "Request Entity Too Large");
  if (content.length === 0) return {};
  if (request.headers["content-type"] !== "application/json") invalid("Bad Request. Content-Type must be JSON");
  return JSON.parse(content.toString("utf8")) as Record<string, unknown>;
};

/** Converts a metric to the JSON format of protobuf. */
const toldMetric = ({ value, ...metric }: Metric): object => ({
  ...metric,
  value: Number.isFinite(value) ? value : String(value),
});

/** Starts a server with the rules of MLflow's tracking protocol, see mlflow-rules.ts. Contains no code of MLflow. */
export const openTestMlflow = async ({ authorization, tls }: TestMlflowOptions = {}): Promise<TestMlflow> => {
  const experiments = new Map<string, KeptExperiment>();
  const runs = new Map<string, KeptRun>();
  const requests: string[] = [];
  const runOf = (id: unknown): KeptRun => {
    if (typeof id !== "string" || id === "") invalid("Missing value for required parameter 'run_id'");
    return runs.get(id as string) ?? missing(`Run with id=${String(id)} not found`);
  };
  const activeRun = (id: unknown): KeptRun => {
    const run = runOf(id);
    if (run.isDeleted) invalid(`The run ${String(id)} must be in the 'active' state. Current state is deleted.`);
    return run;
  };
  const stageOf = ({ isDeleted }: { readonly isDeleted: boolean }): string => (isDeleted ? "deleted" : "active");
  const answers: Readonly<Record<string, (body: Record<string, unknown>, query: URLSearchParams) => object>> = {
    "GET experiments/get-by-name": (_, query) => {
      const name = requireName(query.get("experiment_name") ?? "", 500, "experiment name");
      const found = experiments.get(name) ?? missing(`Could not find experiment with name '${name}'`);
      return { experiment: { experiment_id: found.id, name, lifecycle_stage: stageOf(found) } };
    },
    "POST experiments/create": ({ name: given }) => {
      const name = requireName(given, 500, "experiment name");
      if (experiments.has(name)) throw new Refusal(400, "RESOURCE_ALREADY_EXISTS", `Experiment(name=${name}) is there`);
      const id = String(experiments.size + 1);
      experiments.set(name, { id, isDeleted: false });
      return { experiment_id: id };
    },
    "POST runs/create": ({ experiment_id: experiment, run_name: name, start_time: start, tags = [] }) => {
      const found =
        [...experiments.values()].find(({ id }) => id === experiment) ??
        missing(`No Experiment with id=${String(experiment)} exists`);
      if (found.isDeleted)
        invalid(`The experiment ${found.id} must be in the 'active' state. Current state is deleted.`);
      requireTime(start, "start_time");
      const id = `run${runs.size + 1}`;
      runs.set(id, {
        experiment: found.id,
        name: requireName(name, 250, "run_name"),
        tags: Object.fromEntries(entriesOf(tags, "tags").map(({ key, value }) => [key, value])),
        params: {},
        metrics: [],
        status: "RUNNING",
        isDeleted: false,
      });
      return { run: { info: { run_id: id, lifecycle_stage: "active" } } };
    },
    "GET runs/get": (_, query) => {
      const id = query.get("run_id") ?? "";
      const run = runOf(id);
      const latest = new Map<string, Metric>();
      for (const metric of run.metrics) {
        const other = latest.get(metric.key);
        const isLater = (a: Metric, b: Metric): boolean =>
          a.step !== b.step
            ? a.step > b.step
            : a.timestamp !== b.timestamp
              ? a.timestamp > b.timestamp
              : a.value > b.value;
        if (other === undefined || isLater(metric, other)) latest.set(metric.key, metric);
      }
      const params = Object.entries(run.params).map(([key, value]) => ({ key, value }));
      // Empty lists are omitted.
      const data = {
        ...(latest.size > 0 && { metrics: [...latest.values()].map(toldMetric) }),
        ...(params.length > 0 && { params }),
      };
      return { run: { info: { run_id: id, status: run.status, lifecycle_stage: stageOf(run) }, data } };
    },
    "POST runs/log-batch": ({ run_id: id, ...body }) => {
      const { metrics, params, tags } = batchOf(body);
      const run = activeRun(id);
      for (const { key, value } of newParams(run.params, params)) run.params[key] = value;
      for (const { key, value } of tags) run.tags[key] = value;
      const idOf = (metric: Metric): string =>
        JSON.stringify(toldMetric(metric), ["key", "value", "step", "timestamp"]);
      const there = new Set(run.metrics.map(idOf));
      for (const metric of metrics) {
        if (!there.has(idOf(metric))) run.metrics.push(metric);
        there.add(idOf(metric));
      }
      return {};
    },
    "POST runs/update": ({ run_id: id, status, end_time: end }) => {
      const run = activeRun(id);
      run.status = statusOf(status);
      run.endTime = requireTime(end, "end_time") ?? run.endTime;
      return { run_info: { run_id: id } };
    },
  };
  const listener: RequestListener = (request, response) => {
    const answer = async (): Promise<object> => {
      const url = new URL(request.url!, "http://localhost");
      requests.push(url.pathname);
      const body = await bodyOf(request);
      const path = /^\/api\/2\.0\/mlflow\/(.+)$/.exec(url.pathname)?.[1] ?? "";
      const refused = state.down ?? state.refuses?.(path);
      if (refused !== undefined) throw new Refusal(refused, "TEMPORARILY_UNAVAILABLE", "come back later");
      if (request.headers.authorization !== authorization) throw new Refusal(401, "UNAUTHENTICATED", "who are you");
      const known = answers[`${request.method} ${path}`];
      if (known === undefined) throw new Refusal(404, "ENDPOINT_NOT_FOUND", "there is nothing here");
      return known(body, url.searchParams);
    };
    answer().then(
      (value) => {
        if (state.elsewhere !== undefined) return response.writeHead(301, { Location: state.elsewhere }).end();
        if (state.losesAnswer) {
          state.losesAnswer = false;
          return request.socket.destroy();
        }
        return response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
      },
      (error: unknown) => {
        const { status, code, message } =
          error instanceof Refusal ? error : new Refusal(500, "INTERNAL_ERROR", String(error));
        response.writeHead(status, { "Content-Type": "application/json" });
        response.end(JSON.stringify({ error_code: code, message }));
      },
    );
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const state: TestMlflow = {
    address: `${tls === undefined ? "http" : "https"}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    experiments,
    runs,
    requests,
    down: undefined,
    refuses: undefined,
    elsewhere: undefined,
    losesAnswer: false,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return state;
};
