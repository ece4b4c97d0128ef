import type { Job, ModuleJob } from "../job/job.ts";

/** Facts about a job key that may name a user module. */
interface KeyFacts {
  /** Parameters of a factory that the module exports. */
  readonly parameters: string;
  /** Helper function that types such a factory. */
  readonly helper: string;
  /** Whether all processes of a run load the module. If not, only the process that keeps the record loads it. */
  readonly everywhere: boolean;
}

/** Job keys that may name a module, `{ kind: module, file }`, by path. */
export type ModuleKey =
  | "data"
  | "model"
  | "optimizer"
  | "learningRate.schedule"
  | "compression"
  | "metrics"
  | "callbacks";

/**
 * Facts about each module key. This table determines which modules are loaded, identified by content digest, and hashed
 * without their file path.
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

/** Path of a key in a job. */
export const pathOf = (key: ModuleKey): readonly string[] => key.split(".");

type Part = Readonly<Record<string, unknown>>;

/** Value of a key in a job. */
const partAt = (job: object, key: ModuleKey): unknown =>
  pathOf(key).reduce<unknown>((part, name) => (part as Part | undefined)?.[name], job);

const isModule = (part: unknown): part is ModuleJob => (part as Partial<ModuleJob> | undefined)?.kind === "module";

/** Modules that a job names. */
export const modulesOf = (job: object): (readonly [key: ModuleKey, module: ModuleJob])[] =>
  allKeys.flatMap((key) => {
    const part = partAt(job, key);
    return isModule(part) ? [[key, part] as const] : [];
  });

const replaced = (part: Part, [name, ...rest]: readonly string[], module: object): Part => ({
  ...part,
  [name!]: rest.length === 0 ? module : replaced(part[name!] as Part, rest, module),
});

/** Replace each module that a job names. */
export const withModules = <Like extends object>(
  job: Like,
  change: (module: ModuleJob) => Partial<Record<keyof ModuleJob, unknown>>,
): Like =>
  modulesOf(job).reduce<Part>(
    (like, [key, module]) => replaced(like, pathOf(key), change(module)),
    job as Part,
  ) as Like;

/** Remove the file paths of a job's modules, because only their content counts. */
export const withoutModulePaths = (job: Job): Job => withModules(job, ({ file: _, ...module }) => module);

/** Paths of the job keys that name module files. */
export const moduleFilePaths: readonly (readonly string[])[] = allKeys.map((key) => [...pathOf(key), "file"]);
