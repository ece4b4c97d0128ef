import type { Job, ModuleJob } from "./job.ts";

/** Properties of a job key that can name a user module. */
interface KeyFacts {
  /** Parameters of the factory that the module exports, as text for messages. */
  readonly parameters: string;
  /** Name of the helper function that types the factory. */
  readonly helper: string;
  /** Whether all processes of a run load the module. False: only the process that records the run loads the module. */
  readonly everywhere: boolean;
}

/** Path of a job key that can name a module, `{ kind: module, file }`. */
export type ModuleKey =
  | "data"
  | "model"
  | "optimizer"
  | "learningRate.schedule"
  | "compression"
  | "metrics"
  | "callbacks";

/**
 * Properties of each module key. The modules under these keys are loaded, identified by content digest, and hashed
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

/** Returns the path of a key in a job. */
export const pathOf = (key: ModuleKey): readonly string[] => key.split(".");

type Part = Readonly<Record<string, unknown>>;

/** Returns the value of a key in a job. */
const partAt = (job: object, key: ModuleKey): unknown =>
  pathOf(key).reduce<unknown>((part, name) => (part as Part | undefined)?.[name], job);

const isModule = (part: unknown): part is ModuleJob => (part as Partial<ModuleJob> | undefined)?.kind === "module";

/** Returns the modules that a job names, by job key. */
export const modulesOf = (job: object): (readonly [key: ModuleKey, module: ModuleJob])[] =>
  allKeys.flatMap((key) => {
    const part = partAt(job, key);
    return isModule(part) ? [[key, part] as const] : [];
  });

const replaced = (part: Part, [name, ...rest]: readonly string[], module: object): Part => ({
  ...part,
  [name!]: rest.length === 0 ? module : replaced(part[name!] as Part, rest, module),
});

/** Returns the job with each of its modules replaced by the result of `change`. */
export const withModules = <Like extends object>(
  job: Like,
  change: (module: ModuleJob) => Partial<Record<keyof ModuleJob, unknown>>,
): Like =>
  modulesOf(job).reduce<Part>(
    (like, [key, module]) => replaced(like, pathOf(key), change(module)),
    job as Part,
  ) as Like;

/** Removes the file paths of a job's modules, because only the contents of the modules are hashed. */
export const withoutModulePaths = (job: Job): Job => withModules(job, ({ file: _, ...module }) => module);

/** Paths of the job keys that name module files. */
export const moduleFilePaths: readonly (readonly string[])[] = allKeys.map((key) => [...pathOf(key), "file"]);
