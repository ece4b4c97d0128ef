import { z } from "zod";
import { path } from "./ranges.ts";

/** Schema of the SHA-256 digest of an input of a run. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hexadecimal");

/** Fields of a user object that a module function returns. */
export const ownModule = {
  kind: z.literal("module"),
  file: path.describe("JavaScript or TypeScript module, relative to the folder of the job file."),
  export: z.string().min(1).max(100).default("default").describe("Name of the exported function."),
  options: z.record(z.string(), z.unknown()).default({}).describe("Options passed to the function."),
  digest: digest
    .optional()
    .describe("SHA-256 of the module and its imports; filled in when a run starts, not for job files."),
};

/** Fields of a user object that a program passed to `train`. */
export const ownProgram = { kind: z.literal("program"), digest };

/** Schema description of a user object that a program passed to `train`. */
export const programRule = "An object passed to train() by a program; not for job files.";

/** Returns the schema of a user object, which is either exported by a user module or passed by a program. */
export const userObject = (describe: string) =>
  z
    .discriminatedUnion("kind", [z.strictObject(ownModule), z.strictObject(ownProgram).describe(programRule)])
    .describe(describe);
