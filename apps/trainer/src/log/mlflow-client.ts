import { ConfigError } from "../errors.ts";

// Own code for six requests of MLflow's public REST protocol: the client `mlflow` 2.0 on npm is not the project's own,
// and brings a fetch of its own.
// Source: https://mlflow.org/docs/latest/api_reference/rest-api.html, version 2.0 of the protocol.

/** A server of MLflow, and what it knows a user by. */
export interface MlflowServer {
  /** Without a slash at its end. */
  readonly address: string;
  /** The header `Authorization`. */
  readonly authorization?: string | undefined;
}

/** A value of a metric. */
export interface MlflowPoint {
  readonly key: string;
  readonly value: number;
  readonly step: number;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** A name and its value, of parameters and of tags. */
export interface MlflowEntry {
  readonly key: string;
  readonly value: string;
}

/** Most points of a request, and most entries: what every server takes. */
export const mostPoints = 1000;
const mostEntries = 100;
/** Longer values are cut: what every server takes. */
const mostValueLength = 500;
const mostKeyLength = 250;
const patience = 10_000;

/** A request that was refused, or that nobody has answered. */
export class MlflowFault extends Error {
  override name = "MlflowFault";

  /** The same request will be refused again. */
  readonly isLasting: boolean;

  constructor(message: string, isLasting: boolean, options?: ErrorOptions) {
    super(message, options);
    this.isLasting = isLasting;
  }
}

/**
 * The server that the environment names, as MLflow's own client reads it: `MLFLOW_TRACKING_URI`, and
 * `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`. Nothing of it is kept.
 *
 * @throws ConfigError where no server is named, or none that speaks HTTP.
 */
export const mlflowServerOf = (env: Readonly<Record<string, string | undefined>>): MlflowServer => {
  const uri = env["MLFLOW_TRACKING_URI"];
  if (uri === undefined || uri === "")
    throw new ConfigError([
      "--log mlflow: MLFLOW_TRACKING_URI names no server; set it to the address of yours, such as http://127.0.0.1:5000",
    ]);
  const url = URL.parse(uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new ConfigError([
      `--log mlflow: MLFLOW_TRACKING_URI is ${JSON.stringify(uri)}, but must be an address of http or https; for a folder or a database, start mlflow server on it`,
    ]);
  const token = env["MLFLOW_TRACKING_TOKEN"];
  const user = env["MLFLOW_TRACKING_USERNAME"] ?? decoded(url.username);
  const password = env["MLFLOW_TRACKING_PASSWORD"] ?? decoded(url.password);
  const authorization =
    token !== undefined && token !== ""
      ? `Bearer ${token}`
      : user !== ""
        ? `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
        : undefined;
  return { address: `${url.origin}${url.pathname.replace(/\/+$/, "")}`, authorization };
};

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** A name as MLflow takes it: letters, digits and `_-. /`. */
export const mlflowKey = (name: string): string =>
  name.replaceAll(/[^\p{L}\p{N}_\-. /]/gu, "_").slice(0, mostKeyLength);

const chunks = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));

/** Speaks to a server of MLflow. Every call throws MlflowFault. */
export class MlflowClient {
  private readonly server: MlflowServer;

  constructor(server: MlflowServer) {
    this.server = server;
  }

  /** The id of an experiment, which is made where there is none of the name. */
  async experiment(name: string): Promise<string> {
    const find = async (): Promise<string> => {
      const { experiment } = (await this.ask(
        "GET",
        `experiments/get-by-name?${new URLSearchParams({ experiment_name: name }).toString()}`,
      )) as { readonly experiment?: { readonly experiment_id?: unknown } };
      return idIn(experiment?.experiment_id, "an experiment");
    };
    try {
      return await find();
    } catch (error) {
      if (!isCode(error, "RESOURCE_DOES_NOT_EXIST")) throw error;
    }
    try {
      const made = (await this.ask("POST", "experiments/create", { name })) as { readonly experiment_id?: unknown };
      return idIn(made.experiment_id, "an experiment");
    } catch (error) {
      if (!isCode(error, "RESOURCE_ALREADY_EXISTS")) throw error;
      return find(); // somebody was faster
    }
  }

  /** Make a run. @returns its id. */
  async createRun(experiment: string, name: string, startedAt: number, tags: readonly MlflowEntry[]): Promise<string> {
    const { run } = (await this.ask("POST", "runs/create", {
      experiment_id: experiment,
      run_name: name,
      start_time: startedAt,
      tags: tags.slice(0, 20).map(cut),
    })) as { readonly run?: { readonly info?: { readonly run_id?: unknown } } };
    return idIn(run?.info?.run_id, "a run");
  }

  /** What a run is made with; the same once more changes nothing. */
  async logParameters(run: string, parameters: readonly MlflowEntry[]): Promise<void> {
    for (const params of chunks(parameters, mostEntries))
      await this.ask("POST", "runs/log-batch", { run_id: run, params: params.map(cut) });
  }

  /** @param points at most `mostPoints`. */
  async logPoints(run: string, points: readonly MlflowPoint[]): Promise<void> {
    await this.ask("POST", "runs/log-batch", { run_id: run, metrics: points });
  }

  /** Say what became of a run; "RUNNING" of one that goes on. */
  async update(run: string, status: "RUNNING" | "FINISHED" | "FAILED" | "KILLED", endedAt?: number): Promise<void> {
    await this.ask("POST", "runs/update", { run_id: run, status, ...(endedAt !== undefined && { end_time: endedAt }) });
  }

  private async ask(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const { address, authorization } = this.server;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${address}/api/2.0/mlflow/${path}`, {
        method,
        redirect: "error", // what proves who we are goes to this server alone
        signal: AbortSignal.timeout(patience),
        headers: {
          ...(authorization !== undefined && { Authorization: authorization }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      text = await response.text();
    } catch (cause) {
      const { message, cause: inner } = cause as Error;
      throw new MlflowFault(`${address} does not answer (${(inner as Error | undefined)?.message || message})`, false, {
        cause,
      });
    }
    const answer = parsed(text);
    if (response.ok) return answer;
    const { error_code: code, message } = answer as { readonly error_code?: unknown; readonly message?: unknown };
    const isLasting = response.status < 500 && response.status !== 429 && response.status !== 408;
    const reason = typeof message === "string" ? message.slice(0, 200) : text.slice(0, 200).trim();
    throw new MlflowFault(`${address} answers ${response.status} (${reason.replaceAll(/\s+/g, " ")})`, isLasting, {
      cause: code,
    });
  }
}

const cut = ({ key, value }: MlflowEntry): MlflowEntry => ({
  key: mlflowKey(key),
  value: value.slice(0, mostValueLength),
});

const isCode = (error: unknown, code: string): boolean => error instanceof MlflowFault && error.cause === code;

const parsed = (text: string): object => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
};

const idIn = (value: unknown, what: string): string => {
  if (typeof value === "string" && value !== "") return value;
  throw new MlflowFault(`the server names no id of ${what}; is it a server of MLflow?`, true);
};
