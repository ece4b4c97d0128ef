import { mlflowKey, mlflowText, uniqueKeys } from "./mlflow-names.ts";
import type { MlflowServer } from "./mlflow-server.ts";
import { sendRequest } from "./send-request.ts";
import { visibleLine } from "@skein/tensor-core/backend";

// Implements seven requests of MLflow's public REST protocol. The client `mlflow` 2.0 on npm is not used, because it is
// not from the MLflow project, and includes an implementation of fetch. Source:
// https://mlflow.org/docs/latest/api_reference/rest-api.html, version 2.0 of the protocol. The limits of servers are in
// mlflow/utils/validation.py, mlflow/server/handlers.py and mlflow/store/tracking/sqlalchemy_store.py of MLflow.

/** A metric value at one step. */
export interface MlflowPoint {
  readonly key: string;
  /** Metric value. May be NaN or infinite; the protocol sends these values as text. */
  readonly value: number;
  readonly step: number;
  /** Time of the measurement in milliseconds since 1970. */
  readonly timestamp: number;
}

/** Name and value of a parameter or a tag. */
export interface MlflowEntry {
  readonly key: string;
  readonly value: string;
}

/** Maximum number of points per request that every server accepts. */
export const maxPoints = 1000;
/** Maximum number of parameters, or of tags, per request that every server accepts. */
const maxEntries = 100;
const maxNameLength = 250;

/** Error for a request that the server rejected or did not answer. */
export class MlflowFault extends Error {
  override name = "MlflowFault";

  /** Whether the server would reject the same request again, so that a retry is useless. */
  readonly isLasting: boolean;

  constructor(message: string, isLasting: boolean, options?: ErrorOptions) {
    super(visibleLine(message), options);
    this.isLasting = isLasting;
  }
}

/** Splits a list into parts of at most `size` elements. */
export const chunks = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));

/** Parameter names and metric steps that the server has stored for a run. */
export interface MlflowRunContents {
  /** Names of the parameters that the server has. */
  readonly parameters: ReadonlySet<string>;
  /** Last step of each metric, by name. */
  readonly steps: ReadonlyMap<string, number>;
}

/** Client of an MLflow server. Every method throws MlflowFault if its request fails. */
export class MlflowClient {
  private readonly server: MlflowServer;

  constructor(server: MlflowServer) {
    this.server = server;
  }

  /**
   * Returns the id of an experiment. Creates the experiment if it does not exist.
   *
   * @throws MlflowFault with `isLasting` if the experiment was deleted, because the server rejects a new experiment
   * with the same name.
   */
  async experiment(name: string): Promise<string> {
    const find = async (): Promise<string> => {
      const { experiment } = (await this.ask(
        "GET",
        `experiments/get-by-name?${new URLSearchParams({ experiment_name: name }).toString()}`,
      )) as { readonly experiment?: { readonly experiment_id?: unknown; readonly lifecycle_stage?: unknown } };
      if (experiment?.lifecycle_stage === "deleted")
        throw new MlflowFault(
          `${this.server.address} has deleted the experiment ${name}; restore it there, or set MLFLOW_EXPERIMENT_NAME to another name`,
          true,
        );
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
      return find(); // another client created the experiment first
    }
  }

  /** Creates a run. @returns the id of the run. */
  async createRun(experiment: string, name: string, startedAt: number, tags: readonly MlflowEntry[]): Promise<string> {
    const { run } = (await this.ask("POST", "runs/create", {
      experiment_id: experiment,
      run_name: name.slice(0, maxNameLength),
      start_time: startedAt,
      tags: tags.map(cut),
    })) as { readonly run?: { readonly info?: { readonly run_id?: unknown } } };
    return idIn(run?.info?.run_id, "a run");
  }

  /** Reads the contents of a run on the server. Undefined if the run does not exist or was deleted. */
  async readRun(id: string): Promise<MlflowRunContents | undefined> {
    try {
      const { run } = (await this.ask("GET", `runs/get?${new URLSearchParams({ run_id: id }).toString()}`)) as {
        readonly run?: {
          readonly info?: { readonly lifecycle_stage?: unknown };
          readonly data?: { readonly params?: unknown; readonly metrics?: unknown };
        };
      };
      if (run?.info?.lifecycle_stage === "deleted") return undefined;
      const { params, metrics } = run?.data ?? {};
      return {
        parameters: new Set(keyed(params).map(({ key }) => String(key))),
        steps: new Map(keyed(metrics).map(({ key, step = 0 }) => [String(key), Number(step)])),
      };
    } catch (error) {
      if (isCode(error, "RESOURCE_DOES_NOT_EXIST")) return undefined;
      throw error;
    }
  }

  /**
   * Logs parameters of a run. Parameters that the server already has are skipped, because the server rejects a request
   * that changes a parameter.
   *
   * @param there names of the parameters on the server.
   */
  async logParameters(run: string, parameters: readonly MlflowEntry[], there: ReadonlySet<string>): Promise<void> {
    const entries = uniqueKeys(parameters.map(cut)).filter(({ key }) => !there.has(key));
    for (const params of chunks(entries, maxEntries)) await this.ask("POST", "runs/log-batch", { run_id: run, params });
  }

  /**
   * Logs points. Repeating a call has no effect.
   * @param points at most `maxPoints` points.
   */
  async logPoints(run: string, points: readonly MlflowPoint[]): Promise<void> {
    const metrics = points.map(({ value, ...point }) => ({
      ...point,
      value: Number.isFinite(value) ? value : String(value), // protobuf's JSON represents NaN and infinities as strings
    }));
    await this.ask("POST", "runs/log-batch", { run_id: run, metrics });
  }

  /** Sets the status of a run. "RUNNING": the run resumes. */
  async update(run: string, status: "RUNNING" | "FINISHED" | "FAILED" | "KILLED", endedAt?: number): Promise<void> {
    await this.ask("POST", "runs/update", { run_id: run, status, ...(endedAt !== undefined && { end_time: endedAt }) });
  }

  private async ask(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const { address, authorization, authority } = this.server;
    const { status, text, location } = await sendRequest(`${address}/api/2.0/mlflow/${path}`, {
      method,
      authorization,
      authority,
      body,
    }).catch((cause: unknown) => {
      throw new MlflowFault(`${address} does not answer (${reasonOf(cause as Error)})`, false, { cause });
    });
    const answer = parsed(text);
    if (status >= 200 && status < 300) return answer;
    // Redirects are not followed, because credentials must be sent only to this server.
    if (location !== undefined)
      throw new MlflowFault(`${address} redirects to ${location}; set MLFLOW_TRACKING_URI to that address`, true);
    const { error_code: code, message } = answer as { readonly error_code?: unknown; readonly message?: unknown };
    const isLasting = status < 500 && status !== 429 && status !== 408;
    const reason = (typeof message === "string" ? message : text).slice(0, 200).trim();
    throw new MlflowFault(`${address} answers ${status} (${reason.replaceAll(/\s+/g, " ")})`, isLasting, {
      cause: code,
    });
  }
}

/**
 * Returns the message of a failed request as one line. If the server's certificate was signed by an unknown authority,
 * the line also suggests a fix.
 */
const reasonOf = (error: Error): string => {
  const { code = "" } = error as NodeJS.ErrnoException;
  const isUnknown = /SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_UNTRUSTED/.test(code);
  return `${error.message || code}${isUnknown ? "; set MLFLOW_TRACKING_SERVER_CERT_PATH to a file with the certificate of its authority" : ""}`;
};

const cut = ({ key, value }: MlflowEntry): MlflowEntry => ({ key: mlflowKey(key), value: mlflowText(value) });

/** Returns a list in a server's response. Empty if the response does not contain the list. */
const keyed = (list: unknown): readonly { readonly key?: unknown; readonly step?: unknown }[] =>
  Array.isArray(list) ? (list as { readonly key?: unknown }[]) : [];

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
  throw new MlflowFault(`the answer of the server has no id of ${what}; check that it is an MLflow server`, true);
};
