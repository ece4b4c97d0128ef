import { isAbsolute, resolve } from "node:path";
import { ConfigError, parseBoundedJson } from "@skein/cli/node";
import { firstLine, maxYamlLength, type ParsedYaml, parseYaml, yamlOptions } from "@skein/cli/parse-yaml";
import { isAddress } from "@skein/data/node";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import { type Document, isMap, isNode, isScalar, LineCounter, parse } from "yaml";
import type { z } from "zod";
import type { Job } from "../job.ts";
import { crossFieldFaults } from "../faults/cross-field-faults.ts";
import { jobSchema } from "../job-schema.ts";
import { moduleFilePaths } from "../module-keys.ts";

/** A command-line value that overrides the value in the job file. */
export interface Override {
  readonly path: readonly string[];
  readonly value: unknown;
  /** Name of the override in errors, such as `--ranks 4`. */
  readonly origin: string;
}

export type Path = readonly (string | number)[];

/**
 * Sources of a job's values: the job file with its line numbers, and command-line options. Error messages name these
 * sources as the location of a problem.
 */
interface Source {
  readonly file: string;
  readonly document: Document | undefined;
  readonly lines: LineCounter;
  readonly overrides: readonly Override[];
}

export const startsWith = (path: Path, prefix: Path): boolean =>
  prefix.every((key, i) => String(path[i]) === String(key));

/**
 * Returns the text offset of the element at `path`, or of its deepest existing ancestor. If the element has a key, the
 * offset is the start of the key; otherwise, the start of the value.
 */
const offsetOf = (document: Document, path: Path): number => {
  for (let depth = path.length; depth > 0; depth--) {
    const parent: unknown = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(path[depth - 1]))
      : undefined;
    if (pair !== undefined && isNode(pair.key)) return pair.key.range?.[0] ?? 0;
    const value: unknown = document.getIn(path.slice(0, depth), true);
    if (isNode(value)) return value.range?.[0] ?? 0;
  }
  return isNode(document.contents) ? (document.contents.range?.[0] ?? 0) : 0;
};

const locationOf = ({ file, document, lines, overrides }: Source, path: Path): string => {
  const inFile = path.length === 0 || document?.hasIn(path) === true;
  const override = overrides.findLast(
    (candidate) => startsWith(path, candidate.path) || (!inFile && startsWith(candidate.path, path)),
  );
  if (override !== undefined) return override.origin;
  if (document === undefined) return file;
  const { line, col } = lines.linePos(offsetOf(document, path));
  return `${file}:${line}:${col}`;
};

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string | number, unknown>)[key]
        : undefined,
    root,
  );

/**
 * Joins the keys of a path with dots. Unknown keys may contain any characters, so unusual names are quoted and escaped.
 */
const nameOf = (path: Path): string => {
  const name = path.join(".");
  return /^[\w.-]{1,80}$/.test(name) ? name : excerpt(name);
};

/**
 * Returns the keys that the schema allows at `path`. For a union, returns the keys of the variant that `root` selects.
 */
const keysAt = (path: Path, root: unknown): string[] => {
  type Loose = {
    def: {
      type: string;
      innerType?: Loose;
      options?: Loose[];
      shape?: Record<string, Loose>;
      values?: unknown[];
      entries?: Record<string, unknown>;
    };
  };
  const unwrap = (schema: Loose): Loose => (schema.def.innerType === undefined ? schema : unwrap(schema.def.innerType));
  const shapeOf = (schema: Loose, value: unknown): Record<string, Loose> => {
    const inner = unwrap(schema);
    if (inner.def.options === undefined) return inner.def.shape ?? {};
    const kind = valueAt(value, ["kind"]);
    const names = ({ def }: Loose): unknown[] => def.values ?? Object.values(def.entries ?? {});
    const chosen = inner.def.options.find(({ def }) => def.shape && names(def.shape["kind"]!).includes(kind));
    // All keys except `kind` depend on the kind.
    return chosen?.def.shape ?? { kind: inner };
  };
  let shape = shapeOf(jobSchema as unknown as Loose, root);
  for (const [depth, key] of path.entries()) {
    const child = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (child === undefined) return [];
    shape = shapeOf(child, valueAt(root, path.slice(0, depth + 1)));
  }
  return Object.keys(shape);
};

const suggestion = (word: unknown, known: readonly string[]): string => {
  const intended = typeof word === "string" ? didYouMean(word, known) : undefined;
  return intended === undefined ? `use one of: ${known.join(", ")}` : `did you mean "${intended}"?`;
};

/**
 * Returns the suggested fix for a value that must be an object: the keys of the object, and an example that contains
 * the given value.
 */
const withKeys = (known: readonly string[], value?: unknown): string => {
  const [first] = known;
  if (first === undefined) return "change it";
  const isExample = typeof value === (first === "kind" ? "string" : "number");
  const example = isExample ? `, such as { ${first}: ${excerpt(value, 40)} }` : "";
  return `give an object${example}; its keys: ${known.join(", ")}`;
};

/** Formats a zod issue as lines, one per problem: location, key, value, rule and suggested fix. */
const formatIssue = (issue: z.core.$ZodIssue, root: unknown, source: Source): string[] => {
  const path = issue.path as Path;
  const name = nameOf(path);
  const value = valueAt(root, path);
  const line = (rule: string, at: Path = path): string => `${locationOf(source, at)}: ${rule}`;
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys
        .slice(0, maxFaults)
        .map((key) =>
          line(`unknown key ${excerpt([...path, key].join("."))}; ${suggestion(key, keysAt(path, root))}`, [
            ...path,
            key,
          ]),
        );
    case "invalid_union": {
      const options = (issue as { options?: readonly unknown[] }).options?.map(String) ?? [];
      if (options.length === 0) {
        const fitting = issue.errors.flatMap(alternatives).join(" or ");
        return [
          line(
            value === undefined
              ? `${name} is missing; give ${fitting}`
              : `${name} is ${excerpt(value)}, but must be ${fitting}; change it`,
          ),
        ];
      }
      return [
        line(
          value === undefined
            ? `${name} is missing; ${suggestion(undefined, options)}`
            : `${name} is ${excerpt(value)}, which is unknown; ${suggestion(value, options)}`,
        ),
      ];
    }
    case "invalid_value": {
      const known = issue.values.map(String);
      return [line(`${name} is ${excerpt(value)}, which is unknown; ${suggestion(value, known)}`)];
    }
    case "invalid_type":
      if (value === undefined)
        return [line(`${name === "" ? "the job" : name} is missing; give ${article(issue.expected)}`)];
      return [
        line(
          `${name === "" ? "the job" : name} is ${excerpt(value)}, but must be ${article(issue.expected)}; ${
            issue.expected === "object" ? withKeys(keysAt(path, root), name === "" ? undefined : value) : "change it"
          }`,
        ),
      ];
    case "too_small":
      if (issue.origin !== "number" && issue.origin !== "int")
        return [line(`${name} is ${excerpt(value)}, too short; give at least ${issue.minimum}`)];
      return [
        line(
          `${name} is ${excerpt(value)}, but must be ${issue.inclusive === false ? "above" : "at least"} ${String(issue.minimum)}; raise it`,
        ),
      ];
    case "too_big":
      if (issue.origin !== "number" && issue.origin !== "int")
        return [
          line(
            `${name} has ${(value as unknown[] | string).length} ${issue.origin === "string" ? "characters" : "entries"}, but may have at most ${issue.maximum}; shorten it`,
          ),
        ];
      return [
        line(
          `${name} is ${excerpt(value)}, but must be ${issue.inclusive === false ? "below" : "at most"} ${String(issue.maximum)}; lower it`,
        ),
      ];
    default:
      return [line(`${name} is ${excerpt(value)}: ${issue.message}; change it`)];
  }
};

/** Describes the values that one alternative of a union accepts. */
const alternatives = ([issue]: readonly z.core.$ZodIssue[]): readonly string[] => {
  if (issue?.code === "invalid_type") return [article(issue.expected)];
  if (issue?.code === "too_big" && issue.origin === "array") return [`a list of at most ${issue.maximum}`];
  return issue?.code === "invalid_value" ? issue.values.map(String) : [];
};

const article = (type: string): string =>
  type === "int" ? "an integer" : /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;

const setIn = (root: Record<string, unknown>, { path, value, origin }: Override): void => {
  let at = root;
  for (const key of path.slice(0, -1)) {
    const child = Object.hasOwn(at, key) ? at[key] : undefined; // "constructor" is an ordinary key
    if (child !== undefined && (typeof child !== "object" || child === null || Array.isArray(child))) {
      throw new ConfigError([`${origin}: ${key} is ${excerpt(child)} and has no parts; set ${key} itself`]);
    }
    if (child === undefined) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  at[path.at(-1)!] = value;
};

/** Maximum size of a job file in bytes: half the maximum size of a control message, enough for 100,000 file names. */
export const maxJobBytes: number = 32 * 2 ** 20;

/** Maximum number of keys in a path of `--set`. Paths of real options are shorter. */
const maxDepth = 16;

/** Maximum number of reported problems of a job. A job with more problems is probably the wrong file. */
const maxFaults = 10;

/** Parses `key=value` of `--set`. The key may be a path; the value is YAML. */
export const parseOverride = (text: string): Override => parseSetting(text, "--set");

/**
 * Parses `key=value` of a command-line option.
 * @param option name of the option, for errors.
 */
export const parseSetting = (text: string, option: string): Override => {
  const cut = text.indexOf("=");
  const path = text.slice(0, cut).split(".", maxDepth);
  const origin = `${option} ${text.length <= 80 ? text.replaceAll(/\p{C}/gu, "?") : excerpt(text, 80)}`;
  if (text.length > maxYamlLength)
    throw new ConfigError([
      `${origin}: has ${text.length} characters, at most ${maxYamlLength} are allowed; shorten it`,
    ]);
  if (cut < 1 || path.length === maxDepth || path.includes("") || path.includes("__proto__"))
    throw new ConfigError([`${origin}: must read key=value, such as ${option} optimizer.kind=sgd`]);
  try {
    return { path, value: parse(text.slice(cut + 1), yamlOptions) as unknown, origin };
  } catch (error) {
    throw new ConfigError([`${origin}: the value is not valid YAML (${firstLine(error)}); put it in quotes`]);
  }
};

/**
 * Removes validation issues about missing keys that are explained by misspelled keys, so that each mistake is reported
 * only once.
 */
const withoutEchoes = (issues: readonly z.core.$ZodIssue[], root: unknown): readonly z.core.$ZodIssue[] => {
  const intended = new Set(
    issues.flatMap((issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys
            .slice(0, maxFaults)
            .map((key) => [...issue.path, didYouMean(key, keysAt(issue.path as Path, root)) ?? ""].join("."))
        : [],
    ),
  );
  return issues.filter(
    (issue) =>
      !(
        valueAt(root, issue.path as Path) === undefined &&
        (intended.has(issue.path.join(".")) ||
          (issue.path.at(-1) === "kind" && intended.has(issue.path.slice(0, -1).join("."))))
      ),
  );
};

/**
 * Fills in defaults, and checks all rules including rules between fields.
 *
 * @throws ConfigError with one line per problem.
 */
export const checkJob = (root: unknown, source: Partial<Source> & { readonly file: string }): Job => {
  const full: Source = { document: undefined, lines: new LineCounter(), overrides: [], ...source };
  const parsed = jobSchema.safeParse(root);
  if (!parsed.success) {
    const issues = withoutEchoes(parsed.error.issues, root);
    const total = issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);
    const lines = issues
      .slice(0, maxFaults)
      .flatMap((issue) => formatIssue(issue, root, full))
      .slice(0, maxFaults);
    throw new ConfigError(
      total > lines.length
        ? [...lines, `${full.file}: and ${total - lines.length} more faults; correct these first`]
        : lines,
    );
  }
  const faults = crossFieldFaults(parsed.data);
  if (faults.length > 0)
    throw new ConfigError(
      faults.map(
        ({ path, rule }) => `${locationOf(full, path)}: ${path.length === 0 ? "" : `${path.join(".")}: `}${rule}`,
      ),
    );
  return parsed.data;
};

/** A job, and a function that returns the location of a key. */
export interface LocatedJob {
  readonly job: Job;
  readonly locationOf: (path: Path) => string;
}

/** Parses the jobs of a text, one per YAML document, and applies command-line overrides. */
export const parseLocated = (text: string, file: string, overrides: readonly Override[]): readonly LocatedJob[] => {
  if (text.length > maxYamlLength) return [jobOf({ document: undefined, root: longJob(text, file) }, file, overrides)];
  const faults: string[] = [];
  const jobs = parseYaml(text, file).flatMap((parsed) => {
    try {
      return [jobOf(parsed, file, overrides)];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.message.split("\n"));
      return [];
    }
  });
  if (faults.length > 0) throw new ConfigError(faults);
  return jobs;
};

/** Parses a job that is too long for the YAML parser. @throws ConfigError if the text is not JSON. */
const longJob = (text: string, file: string): unknown => {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    throw new ConfigError([
      `${file}: has ${text.length} characters, and a job in YAML at most ${maxYamlLength}; shorten it, or give it as JSON (${(error as Error).message})`,
    ]);
  }
};

/** A parsed job before validation. Key locations (`lines`) are known only for YAML. */
type ParsedJob = Pick<ParsedYaml, "root"> & Pick<Source, "document"> & { readonly lines?: LineCounter };

const jobOf = (
  { document, lines = new LineCounter(), root }: ParsedJob,
  file: string,
  overrides: readonly Override[],
): LocatedJob => {
  const source: Source = { file, document, lines, overrides };
  if (typeof root !== "object" || root === null || Array.isArray(root))
    throw new ConfigError([
      `${locationOf(source, [])}: the job is ${excerpt(root)}, but must be a mapping of keys; see skein-train schema`,
    ]);
  for (const override of overrides) {
    setIn(root as Record<string, unknown>, override);
    // `steps` on the command line removes `epochs` of the file, and vice versa.
    const other = { steps: "epochs", epochs: "steps" }[override.path.join(".")];
    if (other !== undefined && !overrides.some(({ path }) => path.join(".") === other))
      delete (root as Record<string, unknown>)[other];
  }
  return { job: checkJob(root, source), locationOf: (path) => locationOf(source, path) };
};

/** Returns the only job of a file. @throws ConfigError if the file has several jobs. */
export const only = <T>([one, ...others]: readonly T[], file: string): T => {
  if (others.length === 0) return one!;
  throw new ConfigError([
    `${file}: the file holds ${others.length + 1} jobs, and only run takes several; put the intended job into a file of its own`,
  ]);
};

/**
 * Parses the job of a YAML (or JSON) text, and applies command-line overrides.
 *
 * @throws ConfigError if the job is invalid, or if the text has several jobs.
 */
export const parseJob = (text: string, file: string, overrides: readonly Override[] = []): Job =>
  only(parseLocated(text, file, overrides), file).job;

/** Keys of a job that contain paths of files and folders. */
const pathKeys: readonly (readonly string[])[] = [
  ["data", "folder"],
  ["data", "testFile"],
  ["data", "tokenizer"],
  ["model", "folder"],
  ...moduleFilePaths, // includes data.file of all kinds of data
];

/**
 * Returns the job with absolute paths.
 *
 * @param folderOf returns the folder to which the path in a key is relative.
 */
export const withAbsolutePaths = (job: Job, folderOf: (path: Path) => string): Job => {
  const result = structuredClone(job);
  for (const path of pathKeys) {
    const value = valueAt(result, path);
    const absolutePath = (one: string): string => (isAddress(one) ? one : resolve(folderOf(path), one));
    const part = valueAt(result, path.slice(0, -1)) as object;
    if (typeof value === "string") Object.assign(part, { [path.at(-1)!]: absolutePath(value) });
    if (Array.isArray(value)) Object.assign(part, { [path.at(-1)!]: (value as string[]).map(absolutePath) });
  }
  return result;
};

/** A key of a job and its path value, relative to the folder of the job file. */
export interface RelativePath {
  readonly key: string;
  readonly value: string;
}

/** Returns the relative paths of a job's data, model and modules. */
export const relativePaths = (job: Job): RelativePath[] =>
  pathKeys.flatMap((path) =>
    [valueAt(job, path)]
      .flat()
      .filter((value): value is string => typeof value === "string" && !isAbsolute(value) && !isAddress(value))
      .map((value) => ({ key: path.join("."), value })),
  );
