import { z } from "zod";
import type { ModuleJob, ProgramJob } from "./job.ts";
import { path } from "./ranges.ts";

/** Of what a run is made of. */
export const digest: z.ZodString = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hexadecimal");

/** Something of a user's own, by a module that returns it. */
export const ownModule: {
  readonly kind: z.ZodLiteral<"module">;
  readonly file: z.ZodString;
  readonly export: z.ZodDefault<z.ZodString>;
  readonly options: z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodUnknown>>;
  readonly digest: z.ZodOptional<z.ZodString>;
} = {
  kind: z.literal("module"),
  file: path.describe("A module, JavaScript or TypeScript, from the folder of the job file."),
  export: z.string().min(1).max(100).default("default").describe("Name of the function that it exports."),
  options: z.record(z.string(), z.unknown()).default({}).describe("What the function is called with."),
  digest: digest
    .optional()
    .describe("SHA-256 of the module and what it imports, filled in when a run begins; not for job files."),
};

/** The same, given to `train` by a program. */
export const ownProgram: { readonly kind: z.ZodLiteral<"program">; readonly digest: z.ZodString } = {
  kind: z.literal("program"),
  digest,
};

/** Of those that only train() writes. */
export const programRule = "What a program gave to train(); not for job files.";

/** A module, or what a program gave. */
export const ownThing = (describe: string): z.ZodType<ModuleJob | ProgramJob> =>
  z.discriminatedUnion("kind", [
    z.strictObject(ownModule).describe(describe),
    z.strictObject(ownProgram).describe(programRule),
  ]);
