import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job, MemoryJob } from "./job.ts";
import { count } from "./ranges.ts";

/** Schema of the field `memory` of a job. */
export const memorySchema: z.ZodType<
  MemoryJob,
  { recompute?: MemoryJob["recompute"] | undefined; maxBytes?: number | undefined }
> = z
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
  .describe("Memory of a training step; the loss and the gradients do not depend on it.");

const withBlocks: readonly Job["model"]["kind"][] = ["resnet18", "gpt", "pretrained"];

/** Returns the faults in the options of memory. */
export const memoryFaults = ({ memory: { recompute, maxBytes }, model }: Job): CrossFieldFault[] => [
  ...(recompute === "auto" && maxBytes === undefined
    ? [
        {
          path: ["memory", "recompute"],
          rule: "recompute: auto keeps a step within memory.maxBytes, which is not given; give memory.maxBytes, skein-train doctor prints what the step needs",
        },
      ]
    : []),
  ...(recompute !== "auto" && maxBytes !== undefined
    ? [
        {
          path: ["memory", "maxBytes"],
          rule: `maxBytes is the limit of recompute: auto and has no effect with recompute: ${recompute}; use recompute: auto or leave maxBytes out`,
        },
      ]
    : []),
  ...(recompute === "blocks" && !withBlocks.includes(model.kind)
    ? [
        {
          path: ["memory", "recompute"],
          rule: `recompute: blocks is for ${withBlocks.join(", ")}, but the model is of kind ${model.kind}; use recompute: auto${model.kind === "module" || model.kind === "program" ? ", or checkpoint() in the model" : ""}`,
        },
      ]
    : []),
];
