import type { DataJob, Job, ModelJob, ModuleJob, ProgramJob } from "./job.ts";

/** Makes keys optional, except the key `kind` of unions. */
type Loose<T> = T extends readonly unknown[]
  ? T
  : T extends ModuleJob
    ? ModuleInput & Partial<Omit<T, keyof ModuleJob>>
    : T extends { readonly kind: infer Kind }
      ? { readonly kind: Kind } & Partial<Omit<T, "kind">>
      : T extends object
        ? Partial<T>
        : T;

/** A module. A program may also give its file by URL, relative to the program's own file. */
type ModuleInput = Partial<Omit<ModuleJob, "kind" | "file">> & { readonly kind: "module"; readonly file: string | URL };

/** Field `data` of a job, as passed by a program; keys with defaults are optional. */
export type DataInput = Loose<Exclude<DataJob, ModuleJob | ProgramJob>> | ModuleInput;

/** Field `model` of a job, as passed by a program; keys with defaults are optional. */
export type ModelInput = Loose<Exclude<ModelJob, ModuleJob | ProgramJob>> | ModuleInput;

/** Field of a job, without values that only `train` sets. */
type JobPart<T> = Loose<Exclude<T, ProgramJob>>;

/** Keys of a job file except `data` and `model`; keys with defaults are optional. Checked like a job file. */
export type JobInput = {
  readonly [K in Exclude<keyof Job, "batch" | "optimizer" | "learningRate" | "data" | "model">]?:
    | JobPart<Job[K]>
    | undefined;
} & {
  readonly batch: number;
  readonly optimizer: JobPart<Job["optimizer"]>;
  readonly learningRate: Partial<Omit<Job["learningRate"], "schedule">> &
    Pick<Job["learningRate"], "peak"> & { readonly schedule?: ModuleInput | undefined };
};
