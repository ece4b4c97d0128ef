import type { Job, ModuleJob } from "../job/job.ts";

/** What is known of a key of a job that may name a module of a user's. */
interface KeyFacts {
  /** What a function that is its export is called with. */
  readonly parameters: string;
  /** The helper that types such an export. */
  readonly helper: string;
  /** Whether all processes of a run load it; else only the one that keeps the record. */
  readonly everywhere: boolean;
}

/** The keys of a job that may name a module, `{ kind: module, file }`, by their path. */
export type ModuleKey =
  | "data"
  | "model"
  | "optimizer"
  | "learningRate.schedule"
  | "compression"
  | "metrics"
  | "callbacks";

/**
 * What is known of each of them. What is loaded, told by its content and left out of hashes as a place follows from
 * this table.
 */
export const moduleKeys: Readonly<Record<ModuleKey, KeyFacts>> = {
  data: { parameters: "(options)", helper: "defineData", everywhere: true },
  model: { parameters: "(task, options)", helper: "defineModel", everywhere: true },
  optimizer: { parameters: "(context, options)", helper: "defineOptimizer", everywhere: true },
  "learningRate.schedule": { parameters: "(context, options)", helper: "defineSchedule", everywhere: true },
  compression: { parameters: "(context, options)", helper: "defineCompression", everywhere: true },
  metrics: { parameters: "(task, options)", helper: "defineMetrics", everywhere: true },
  callbacks: { parameters: "(run, options)", helper: "defineCallbacks", everywhere: false },
};

const allKeys = Object.keys(moduleKeys) as readonly ModuleKey[];

/** Where a key lies in a job. */
export const pathOf = (key: ModuleKey): readonly string[] => key.split(".");

type Part = Readonly<Record<string, unknown>>;

/** What a job says under a key. */
const partAt = (job: object, key: ModuleKey): unknown =>
  pathOf(key).reduce<unknown>((part, name) => (part as Part | undefined)?.[name], job);

const isModule = (part: unknown): part is ModuleJob => (part as Partial<ModuleJob> | undefined)?.kind === "module";

/** The modules that a job names. */
export const modulesOf = (job: object): (readonly [key: ModuleKey, module: ModuleJob])[] =>
  allKeys.flatMap((key) => {
    const part = partAt(job, key);
    return isModule(part) ? [[key, part] as const] : [];
  });

const replaced = (part: Part, [name, ...rest]: readonly string[], module: object): Part => ({
  ...part,
  [name!]: rest.length === 0 ? module : replaced(part[name!] as Part, rest, module),
});

/** The same job with something else in place of each module that it names. */
export const withModules = <Like extends object>(
  job: Like,
  change: (module: ModuleJob) => Partial<Record<keyof ModuleJob, unknown>>,
): Like =>
  modulesOf(job).reduce<Part>(
    (like, [key, module]) => replaced(like, pathOf(key), change(module)),
    job as Part,
  ) as Like;

/** The same job without the places of its modules: what counts is their content. */
export const withoutModulePlaces = (job: Job): Job => withModules(job, ({ file: _, ...module }) => module);

/** Where a job names the files of its modules. */
export const modulePlaces: readonly (readonly string[])[] = allKeys.map((key) => [...pathOf(key), "file"]);
