import type { z } from "zod";
import type { Immutable } from "./job.ts";
import type { jobSchema } from "./job-schema.ts";

/** A job as written in a job file, before defaults are filled in. */
type JobFile = Immutable<z.input<typeof jobSchema>>;

/**
 * Field of a job, as passed by a program. Excludes the variants that only `train` sets. The file of a module may also
 * be a URL, which a program can resolve against its own file.
 */
type JobPart<T> = T extends { readonly kind: "program" }
  ? never
  : T extends { readonly kind: "module" }
    ? Omit<T, "file"> & { readonly file: string | URL }
    : T;

type JobParts<T> = { readonly [Key in keyof T]: JobPart<T[Key]> };

/** Field `data` of a job, as passed by a program; keys with defaults are optional. */
export type DataInput = JobPart<JobFile["data"]>;

/** Field `model` of a job, as passed by a program; keys with defaults are optional. */
export type ModelInput = JobPart<JobFile["model"]>;

/** Keys of a job file except `data` and `model`; keys with defaults are optional. Checked like a job file. */
export type JobInput = JobParts<Omit<JobFile, "name" | "data" | "model" | "learningRate">> & {
  readonly name?: JobFile["name"] | undefined;
  readonly learningRate: JobParts<JobFile["learningRate"]>;
};
