import { z } from "zod";
import type { Job } from "./job.ts";

const pattern = z.string().regex(/^!?[^!]/, "a pattern is a path of a parameter, or of a part of the model");

/** The field `freeze` of a job. */
export const freezeSchema: z.ZodType<Job["freeze"]> = z
  .array(pattern)
  .min(1)
  .optional()
  .describe(
    "Parameters that stay as they are, by paths as checkpoints write them: a parameter (blocks.0.query.weight), a part of the model with all in it (blocks.0), a pattern (blocks.*.query, **.bias, blocks.{0..5}), or norms-and-biases, all of fewer than two dimensions. One that begins with ! takes back what those before it froze, the last that fits decides. Default: none.",
  );
