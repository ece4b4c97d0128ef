import type { DataJob, Job, ModelJob, ModuleJob, ProgramJob } from "./job.ts";

/** What has a default may be left out; what has kinds needs its kind. */
type Loose<T> = T extends readonly unknown[]
  ? T
  : T extends ModuleJob
    ? ModuleInput & Partial<Omit<T, keyof ModuleJob>>
    : T extends { readonly kind: infer Kind }
      ? { readonly kind: Kind } & Partial<Omit<T, "kind">>
      : T extends object
        ? Partial<T>
        : T;

/** A module, which a program may name by its URL too, that of a file beside it. */
type ModuleInput = Partial<Omit<ModuleJob, "kind" | "file">> & { readonly kind: "module"; readonly file: string | URL };

/** `data` of a job, as a program may write it: what has a default may be left out. */
export type DataInput = Loose<Exclude<DataJob, ModuleJob | ProgramJob>> | ModuleInput;

/** `model` of a job, as a program may write it: what has a default may be left out. */
export type ModelInput = Loose<Exclude<ModelJob, ModuleJob | ProgramJob>> | ModuleInput;

/** A part of a job, without what only train() writes. */
type Said<T> = Loose<Exclude<T, ProgramJob>>;

/** The keys of a job file but `data` and `model`, those with defaults left out at will. Checked as a job file is. */
export type JobInput = {
  readonly [K in Exclude<keyof Job, "batch" | "optimizer" | "learningRate" | "data" | "model">]?:
    | Said<Job[K]>
    | undefined;
} & {
  readonly batch: number;
  readonly optimizer: Said<Job["optimizer"]>;
  readonly learningRate: Partial<Omit<Job["learningRate"], "schedule">> &
    Pick<Job["learningRate"], "peak"> & { readonly schedule?: ModuleInput | undefined };
};
