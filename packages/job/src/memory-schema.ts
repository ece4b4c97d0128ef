import { z } from "zod";
import { count } from "./ranges.ts";

/** Schema of the field `memory` of a job. */
export const memorySchema = z
  .strictObject({
    recompute: z
      .enum(["none", "auto", "blocks"])
      .default("none")
      .describe(
        "Activation recomputation in the backward pass. none: keep all activations; auto: recompute at the lowest cost that keeps the step within maxBytes; blocks: recompute the inside of each block of the model.",
      ),
    maxBytes: count
      .optional()
      .describe(
        "Maximum bytes of intermediate values of a step on each rank, in addition to parameters and optimizer state; for recompute: auto.",
      ),
  })
  .describe("Memory of a training step. These options do not change the loss or the gradients.");
