import { posix } from "node:path";

// Thrown for a request that an MLflow server refuses. The rules are those of mlflow/utils/validation.py,
// mlflow/server/handlers.py and mlflow/store/tracking/sqlalchemy_store.py of MLflow (3.x; if versions differ, the
// strictest since 1.28), written independently.

export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const invalid = (message: string): never => {
  throw new Refusal(400, "INVALID_PARAMETER_VALUE", message);
};
export const missing = (message: string): never => {
  throw new Refusal(404, "RESOURCE_DOES_NOT_EXIST", message);
};

const maxMetrics = 1000;
const maxEntries = 100;
const maxKeyLength = 250;
const maxTagLength = 5000;
/**
 * Maximum length of a parameter. 6000 since MLflow 2.10, where longer values are truncated or refused, depending on the
 * settings of the server.
 */
const maxParamLength = 500;

/** Returns the length of a text in characters as counted by Python. */
const lengthOf = (text: string): number => [...text].length;

/**
 * Returns `value` if it is text of at most `most` characters that a UTF-8 database accepts. Otherwise throws a Refusal.
 */
const requireText = (value: unknown, most: number, what: string): string => {
  if (typeof value !== "string") return invalid(`${what} is no text`);
  if (!value.isWellFormed() || value.includes("\0")) throw new Refusal(500, "INTERNAL_ERROR", `${what} is no UTF-8`);
  if (lengthOf(value) > most) invalid(`'${what}' exceeds the maximum length of ${most} characters`);
  return value;
};

/** Requires a valid name of a metric, parameter or tag. Colons are not allowed, as on Windows. */
const requireKey = (key: unknown, what: string): string => {
  const name = requireText(key, maxKeyLength, what);
  if (!/^[/\p{L}\p{N}_.\- ]*$/u.test(name)) invalid(`Invalid value ${JSON.stringify(name)} for parameter '${what}'`);
  const norm = posix.normalize(name).replace(/(?<=.)\/$/, "");
  if (norm !== name || norm === "." || norm.startsWith("..") || norm.startsWith("/"))
    invalid(`Names may be treated as files in certain cases, and must not resolve to other names: ${name}`);
  return name;
};

/** Parses a double in the JSON format of protobuf. */
const doubleOf = (value: unknown, what: string): number => {
  if (typeof value === "number") return value;
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") return Number(value);
  return invalid(value === undefined || value === null ? `Missing value for ${what}` : `${what} is no double`);
};

const longOf = (value: unknown, what: string): number =>
  typeof value === "number" && Number.isSafeInteger(value) ? value : invalid(`${what} is no long`);

export interface Metric {
  readonly key: string;
  readonly value: number;
  readonly step: number;
  readonly timestamp: number;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
}

type Raw = Readonly<Record<string, unknown>>;

const listOf = (list: unknown, what: string): readonly Raw[] =>
  list === undefined ? [] : Array.isArray(list) ? (list as Raw[]) : invalid(`${what} is no list`);

export const entriesOf = (list: unknown, what: "params" | "tags"): Entry[] =>
  listOf(list, what).map(({ key, value }, i) => ({
    key: requireKey(key, `${what}[${i}].key`),
    value: requireText(value ?? "", what === "params" ? maxParamLength : maxTagLength, `${what}[${i}].value`),
  }));

/** Parses the content of a request to `runs/log-batch`, which is accepted or refused as a whole. */
export const batchOf = (
  body: Raw,
): { readonly metrics: Metric[]; readonly params: Entry[]; readonly tags: Entry[] } => {
  const metrics = listOf(body["metrics"], "metrics").map(({ key, value, timestamp, step = 0 }, i): Metric => {
    const what = `metrics[${i}]`;
    const at = longOf(timestamp, `${what}.timestamp`);
    if (at < 0) invalid(`${what}.timestamp must be a nonnegative long`);
    return {
      key: requireKey(key, `${what}.name`),
      value: doubleOf(value, `${what}.value`),
      timestamp: at,
      step: longOf(step, `${what}.step`),
    };
  });
  const [params, tags] = [entriesOf(body["params"], "params"), entriesOf(body["tags"], "tags")];
  for (const [name, most, { length }] of [
    ["metrics", maxMetrics, metrics],
    ["params", maxEntries, params],
    ["tags", maxEntries, tags],
    ["metrics, params, and tags", maxMetrics, [...metrics, ...params, ...tags]],
  ] as const)
    if (length > most) invalid(`A batch logging request can contain at most ${most} ${name}. Got ${length} ${name}.`);
  if (new Set(params.map(({ key }) => key)).size < params.length)
    invalid("Duplicate parameter keys have been submitted");
  return { metrics, params, tags };
};

/**
 * Requires that existing parameters do not change.
 * @returns the new parameters.
 */
export const newParams = (there: Readonly<Record<string, string>>, params: readonly Entry[]): Entry[] => {
  const changed = params.find(({ key, value }) => key in there && there[key] !== value);
  if (changed !== undefined) invalid(`Changing param values is not allowed. Param with key='${changed.key}' is there`);
  return params.filter(({ key }) => !(key in there));
};

/** Requires a valid name of an experiment or run. */
export const requireName = (name: unknown, most: number, what: string): string =>
  name === "" || name === undefined ? invalid(`Invalid ${what}`) : requireText(name, most, what);

/** Requires a time, an integer in milliseconds. */
export const requireTime = (time: unknown, what: string): number | undefined =>
  time === undefined ? undefined : longOf(time, what);

export const statusOf = (status: unknown): string =>
  typeof status === "string" && ["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"].includes(status)
    ? status
    : invalid(`Invalid value ${JSON.stringify(status)} for parameter 'status'`);
