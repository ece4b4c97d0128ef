import { dirname, isAbsolute, resolve } from "node:path";
import { readTextFile } from "@skein/collectives/node";
import { isAddress } from "@skein/data/node";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import { type Document, isMap, isNode, isScalar, LineCounter, parse } from "yaml";
import type { z } from "zod";
import { parseBoundedJson } from "../files/bounded-json.ts";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { sampleJob } from "../console/own-command.ts";
import { crossFieldFaults, jobSchema } from "../job/job-schema.ts";
import { firstLine, maxYamlLength, type ParsedYaml, parseYaml, yamlOptions } from "../job/parse-yaml.ts";
import { modulePlaces } from "../modules/module-keys.ts";
import { settleJob } from "./settle-job.ts";

/** A value from the command line that goes before the file's. */
export interface Override {
  readonly path: readonly string[];
  readonly value: unknown;
  /** What errors call it: `--ranks 4`. */
  readonly origin: string;
}

type Path = readonly (string | number)[];

/** Where values came from, for errors. */
interface Source {
  readonly file: string;
  readonly document: Document | undefined;
  readonly lines: LineCounter;
  readonly overrides: readonly Override[];
}

const startsWith = (path: Path, prefix: Path): boolean => prefix.every((key, i) => String(path[i]) === String(key));

/** Byte offset of the deepest part of `path` that the file has: of the key where it is a key, else of the value. */
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

const placeOf = ({ file, document, lines, overrides }: Source, path: Path): string => {
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

/** A path as keys with dots between. What no schema names may be anything: it is shown, not printed. */
const nameOf = (path: Path): string => {
  const name = path.join(".");
  return /^[\w.-]{1,80}$/.test(name) ? name : excerpt(name);
};

/** The keys that the schema has at `path`, with the variant that `root` chose where there are several. */
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
    // Which other keys there are depends on the kind.
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
  const meant = typeof word === "string" ? didYouMean(word, known) : undefined;
  return meant === undefined ? `use one of: ${known.join(", ")}` : `did you mean "${meant}"?`;
};

/** How an object is given, by the keys that it may have, and with the value that stands in its place as an example. */
const withKeys = (known: readonly string[], value?: unknown): string => {
  const [first] = known;
  if (first === undefined) return "change it";
  const isExample = typeof value === (first === "kind" ? "string" : "number");
  const example = isExample ? `, such as { ${first}: ${excerpt(value, 40)} }` : "";
  return `give it with keys of its own${example}: ${known.join(", ")}`;
};

/** One line per fault of a zod issue: place, key, value, rule, cure. */
const formatIssue = (issue: z.core.$ZodIssue, root: unknown, source: Source): string[] => {
  const path = issue.path as Path;
  const name = nameOf(path);
  const value = valueAt(root, path);
  const line = (rule: string, at: Path = path): string => `${placeOf(source, at)}: ${rule}`;
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys
        .slice(0, mostFaults)
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

/** What would fit one of the things that a value may be, none of which it is. */
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
    const child = Object.hasOwn(at, key) ? at[key] : undefined; // "constructor" is a key like others
    if (child !== undefined && (typeof child !== "object" || child === null || Array.isArray(child))) {
      throw new ConfigError([`${origin}: ${key} is ${excerpt(child)} and has no parts; set ${key} itself`]);
    }
    if (child === undefined) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  at[path.at(-1)!] = value;
};

/** Maximum size of a job file, in bytes: half of what a control message carries, and the names of 100,000 files. */
export const maxJobBytes: number = 32 * 2 ** 20;

/** Keys in a path of `--set`, and more than any has. */
const mostDepth = 16;

/** What is told of one job; whoever has more faults has another file. */
const mostFaults = 10;

/** Read `key=value` of `--set`: the key may be a path, the value is YAML. */
export const parseOverride = (text: string): Override => parseSetting(text, "--set");

/** The same of another option, which errors name. */
export const parseSetting = (text: string, option: string): Override => {
  const cut = text.indexOf("=");
  const path = text.slice(0, cut).split(".", mostDepth);
  const origin = `${option} ${text.length <= 80 ? text.replaceAll(/\p{C}/gu, "?") : excerpt(text, 80)}`;
  if (text.length > maxYamlLength)
    throw new ConfigError([
      `${origin}: has ${text.length} characters, at most ${maxYamlLength} are allowed; shorten it`,
    ]);
  if (cut < 1 || path.length === mostDepth || path.includes("") || path.includes("__proto__"))
    throw new ConfigError([`${origin}: must read key=value, such as ${option} optimizer.kind=sgd`]);
  try {
    return { path, value: parse(text.slice(cut + 1), yamlOptions) as unknown, origin };
  } catch (error) {
    throw new ConfigError([`${origin}: the value is no YAML (${firstLine(error)}); put it in quotes`]);
  }
};

/** A misspelt key makes the right one missing too; one fault is told once. */
const withoutEchoes = (issues: readonly z.core.$ZodIssue[], root: unknown): readonly z.core.$ZodIssue[] => {
  const meant = new Set(
    issues.flatMap((issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys
            .slice(0, mostFaults)
            .map((key) => [...issue.path, didYouMean(key, keysAt(issue.path as Path, root)) ?? ""].join("."))
        : [],
    ),
  );
  return issues.filter(
    (issue) =>
      !(
        valueAt(root, issue.path as Path) === undefined &&
        (meant.has(issue.path.join(".")) ||
          (issue.path.at(-1) === "kind" && meant.has(issue.path.slice(0, -1).join("."))))
      ),
  );
};

/** Fill defaults and check everything, cross-field rules included. @throws ConfigError with one line per fault. */
export const checkJob = (root: unknown, source: Partial<Source> & { readonly file: string }): Job => {
  const full: Source = { document: undefined, lines: new LineCounter(), overrides: [], ...source };
  const parsed = jobSchema.safeParse(root);
  if (!parsed.success) {
    const issues = withoutEchoes(parsed.error.issues, root);
    const total = issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);
    const told = issues
      .slice(0, mostFaults)
      .flatMap((issue) => formatIssue(issue, root, full))
      .slice(0, mostFaults);
    throw new ConfigError(
      total > told.length
        ? [...told, `${full.file}: and ${total - told.length} more faults; correct these first`]
        : told,
    );
  }
  const faults = crossFieldFaults(parsed.data);
  if (faults.length > 0)
    throw new ConfigError(
      faults.map(
        ({ path, rule }) => `${placeOf(full, path)}: ${path.length === 0 ? "" : `${path.join(".")}: `}${rule}`,
      ),
    );
  return parsed.data;
};

/** A job, and where its keys stand. */
interface PlacedJob {
  readonly job: Job;
  readonly placeOf: (path: Path) => string;
}

/** The jobs of a text, a document each, with values of the command line laid over them. */
const parsePlaced = (text: string, file: string, overrides: readonly Override[]): readonly PlacedJob[] => {
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

/** A job that is too long for the YAML parser. @throws ConfigError if the text is no JSON. */
const longJob = (text: string, file: string): unknown => {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    throw new ConfigError([
      `${file}: has ${text.length} characters, and a job in YAML at most ${maxYamlLength}; shorten it, or give it as JSON (${(error as Error).message})`,
    ]);
  }
};

/** A parsed text; the places of its keys are known in YAML only. */
type ParsedJob = Pick<ParsedYaml, "root"> & Pick<Source, "document"> & { readonly lines?: LineCounter };

const jobOf = (
  { document, lines = new LineCounter(), root }: ParsedJob,
  file: string,
  overrides: readonly Override[],
): PlacedJob => {
  const source: Source = { file, document, lines, overrides };
  if (typeof root !== "object" || root === null || Array.isArray(root))
    throw new ConfigError([
      `${placeOf(source, [])}: the job is ${excerpt(root)}, but must be a mapping of keys; see skein-train schema`,
    ]);
  for (const override of overrides) {
    setIn(root as Record<string, unknown>, override);
    // A length given on the command line replaces the file's, in whichever unit that was.
    const other = { steps: "epochs", epochs: "steps" }[override.path.join(".")];
    if (other !== undefined && !overrides.some(({ path }) => path.join(".") === other))
      delete (root as Record<string, unknown>)[other];
  }
  return { job: checkJob(root, source), placeOf: (path) => placeOf(source, path) };
};

/** @throws ConfigError for several. */
const only = <T>([one, ...others]: readonly T[], file: string): T => {
  if (others.length === 0) return one!;
  throw new ConfigError([
    `${file}: the file holds ${others.length + 1} jobs, and only run takes several; put the one that is meant into a file of its own`,
  ]);
};

/**
 * The job of a YAML (or JSON) text with values of the command line laid over it.
 *
 * @throws ConfigError, for several jobs too.
 */
export const parseJob = (text: string, file: string, overrides: readonly Override[] = []): Job =>
  only(parsePlaced(text, file, overrides), file).job;

/** @throws ConfigError when the file cannot be read, or is no regular one, or too large. */
export const readJobFile = (file: string): string => {
  try {
    return readTextFile(file, maxJobBytes).text;
  } catch (error) {
    throw new ConfigError([
      `${file}: cannot be read (${(error as Error).message}); name a job file, such as ${sampleJob()}`,
    ]);
  }
};

/** Where a job names files and folders: of data and model, and modules. */
const placePaths: readonly (readonly string[])[] = [
  ["data", "folder"],
  ["data", "testFile"],
  ["data", "tokenizer"],
  ["model", "folder"],
  ...modulePlaces, // files of data, too
];

/** The same job with absolute paths. @param folderOf says from which folder the path of a key is seen. */
export const anchored = (job: Job, folderOf: (path: Path) => string): Job => {
  const absolute = structuredClone(job);
  for (const path of placePaths) {
    const place = valueAt(absolute, path);
    const seen = (one: string): string => (isAddress(one) ? one : resolve(folderOf(path), one));
    const part = valueAt(absolute, path.slice(0, -1)) as object;
    if (typeof place === "string") Object.assign(part, { [path.at(-1)!]: seen(place) });
    if (Array.isArray(place)) Object.assign(part, { [path.at(-1)!]: (place as string[]).map(seen) });
  }
  return absolute;
};

/** A key of a job and the path that it says, seen from the folder of the file. */
export interface RelativePath {
  readonly key: string;
  readonly value: string;
}

/** What a job's data and model are read from beside its file. */
export const besideFile = (job: Job): RelativePath[] =>
  placePaths.flatMap((path) =>
    [valueAt(job, path)]
      .flat()
      .filter((value): value is string => typeof value === "string" && !isAbsolute(value) && !isAddress(value))
      .map((value) => ({ key: path.join("."), value })),
  );

const readPlaced = (file: string, overrides: readonly Override[]): readonly PlacedJob[] => {
  const folderOf = (path: Path): string =>
    overrides.some((override) => startsWith(path, override.path)) ? "." : dirname(file);
  return parsePlaced(readJobFile(file), file, overrides).map(({ job, placeOf }) => ({
    job: anchored(job, folderOf),
    placeOf,
  }));
};

/**
 * The job of a file, every path absolute: those in the file are seen from its folder, those on the command line from
 * the working folder.
 *
 * @throws ConfigError when the file cannot be read, too.
 */
export const readJob = (file: string, overrides: readonly Override[] = []): Job =>
  only(readPlaced(file, overrides), file).job;

/** As `readJob`, of a file of one job or of several. */
export const readJobs = (file: string, overrides: readonly Override[] = []): readonly Job[] =>
  readPlaced(file, overrides).map(({ job }) => job);

/**
 * As `readJob`, with the modules and the checkpoint that it names looked at and told by their content.
 *
 * @throws ConfigError for options that a module does not take, ModuleError, PretrainedError, too.
 */
export const loadJob = async (file: string, overrides: readonly Override[] = []): Promise<Job> => {
  const { job, placeOf } = only(readPlaced(file, overrides), file);
  return settleJob(job, placeOf);
};

/**
 * As `loadJob`, of a file of one job or of several, each a YAML document.
 *
 * @throws as `loadJob`, with the faults of all of them.
 */
export const loadJobs = (file: string, overrides: readonly Override[] = []): Promise<readonly Job[]> =>
  Promise.all(readPlaced(file, overrides).map(({ job, placeOf }) => settleJob(job, placeOf)));
