import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** A run as a server of MLflow keeps it. */
export interface KeptRun {
  readonly experiment: string;
  readonly name: string;
  readonly tags: Record<string, string>;
  readonly params: Record<string, string>;
  readonly metrics: {
    readonly key: string;
    readonly value: number;
    readonly step: number;
    readonly timestamp: number;
  }[];
  status: string;
  endTime?: number | undefined;
}

export interface TestMlflow {
  readonly address: string;
  readonly experiments: Map<string, string>;
  readonly runs: Map<string, KeptRun>;
  /** Requests that came, by their paths. */
  readonly requests: string[];
  /** What requests are refused with: a status, or nothing where they are answered. */
  down: number | undefined;
  close(): Promise<void>;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const invalid = (message: string): never => {
  throw new Refusal(400, "INVALID_PARAMETER_VALUE", message);
};
const key = /^[\p{L}\p{N}_\-. /]{1,250}$/u;

const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const content = Buffer.concat(pieces);
  if (content.length > 2 ** 20) invalid("a request has 1 MB at most");
  return content.length === 0 ? {} : (JSON.parse(content.toString("utf8")) as Record<string, unknown>);
};

/**
 * A server over HTTP that keeps the rules of MLflow's tracking protocol: names, sizes of requests, parameters that
 * never change, and who may ask. Written from the protocol's documents, with none of MLflow's code.
 */
export const openTestMlflow = async (authorization?: string): Promise<TestMlflow> => {
  const experiments = new Map<string, string>();
  const runs = new Map<string, KeptRun>();
  const requests: string[] = [];
  const runOf = (id: unknown): KeptRun => runs.get(String(id)) ?? invalid(`no run has the id ${String(id)}`);
  const answers: Readonly<Record<string, (body: Record<string, unknown>, query: URLSearchParams) => object>> = {
    "GET experiments/get-by-name": (_, query) => {
      const id = experiments.get(query.get("experiment_name") ?? "");
      if (id === undefined) throw new Refusal(404, "RESOURCE_DOES_NOT_EXIST", "no experiment has this name");
      return { experiment: { experiment_id: id, name: query.get("experiment_name") } };
    },
    "POST experiments/create": ({ name }) => {
      if (typeof name !== "string" || name === "") invalid("an experiment needs a name");
      if (experiments.has(name as string)) throw new Refusal(400, "RESOURCE_ALREADY_EXISTS", "there is one");
      experiments.set(name as string, String(experiments.size + 1));
      return { experiment_id: String(experiments.size) };
    },
    "POST runs/create": ({ experiment_id: experiment, run_name: name, start_time: start, tags = [] }) => {
      if (![...experiments.values()].includes(experiment as string)) invalid("no such experiment");
      if (!Number.isSafeInteger(start)) invalid("start_time is whole milliseconds");
      const id = `run${runs.size + 1}`;
      const own = Object.fromEntries((tags as { key: string; value: string }[]).map((tag) => [tag.key, tag.value]));
      runs.set(id, {
        experiment: experiment as string,
        name: name as string,
        tags: own,
        params: {},
        metrics: [],
        status: "RUNNING",
      });
      return { run: { info: { run_id: id } } };
    },
    "POST runs/log-batch": ({ run_id: id, metrics = [], params = [] }) => {
      const run = runOf(id);
      const [points, entries] = [metrics as KeptRun["metrics"], params as { key: string; value: string }[]];
      if (points.length > 1000 || entries.length > 100) invalid("too much for one request");
      for (const { key: name, value, step, timestamp } of points)
        if (
          !key.test(name) ||
          !Number.isFinite(value) ||
          !Number.isSafeInteger(step) ||
          !Number.isSafeInteger(timestamp)
        )
          invalid(`metric ${name}`);
      for (const { key: name, value } of entries) {
        if (!key.test(name) || typeof value !== "string" || value.length > 500) invalid(`param ${name}`);
        if (name in run.params && run.params[name] !== value) invalid(`param ${name} changes`);
        run.params[name] = value;
      }
      run.metrics.push(...points);
      return {};
    },
    "POST runs/update": ({ run_id: id, status, end_time: end }) => {
      const run = runOf(id);
      if (!["RUNNING", "FINISHED", "FAILED", "KILLED"].includes(status as string)) invalid("status");
      run.status = status as string;
      if (end !== undefined) run.endTime = end as number;
      return { run_info: { run_id: id } };
    },
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<object> => {
      const url = new URL(request.url!, "http://localhost");
      requests.push(url.pathname);
      const body = await bodyOf(request);
      if (state.down !== undefined) throw new Refusal(state.down, "TEMPORARILY_UNAVAILABLE", "come back later");
      if (request.headers.authorization !== authorization) throw new Refusal(401, "UNAUTHENTICATED", "who are you");
      const path = /^\/api\/2\.0\/mlflow\/(.+)$/.exec(url.pathname)?.[1];
      const known = answers[`${request.method} ${path}`];
      if (known === undefined) throw new Refusal(404, "ENDPOINT_NOT_FOUND", "there is nothing here");
      return known(body, url.searchParams);
    };
    answer().then(
      (value) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value)),
      (error: unknown) => {
        const { status, code, message } =
          error instanceof Refusal ? error : new Refusal(500, "INTERNAL", String(error));
        response.writeHead(status, { "Content-Type": "application/json" });
        response.end(JSON.stringify({ error_code: code, message }));
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const state: TestMlflow = {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    experiments,
    runs,
    requests,
    down: undefined,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return state;
};
