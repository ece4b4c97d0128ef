import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job, MemoryJob } from "./job.ts";
import { count } from "./ranges.ts";

/** `memory` of a job file. */
export const memorySchema: z.ZodType<
  MemoryJob,
  { recompute?: MemoryJob["recompute"] | undefined; maxBytes?: number | undefined }
> = z
  .strictObject({
    recompute: z
      .enum(["none", "auto", "blocks"])
      .default("none")
      .describe(
        "What of the forward pass is computed again in the backward pass instead of being kept: nothing, what keeps the step within maxBytes at least cost, or the inside of each block of the model.",
      ),
    maxBytes: count
      .optional()
      .describe(
        "Most bytes of intermediates of a step on each rank, beside parameters and state; for recompute: auto.",
      ),
  })
  .describe("What a training step keeps; the loss and gradients do not depend on it.");

const withBlocks: readonly Job["model"]["kind"][] = ["resnet18", "gpt", "pretrained"];

/** Rules about what a step keeps. */
export const memoryFaults = ({ memory: { recompute, maxBytes }, model }: Job): CrossFieldFault[] => [
  ...(recompute === "auto" && maxBytes === undefined
    ? [
        {
          path: ["memory", "recompute"],
          rule: "recompute: auto keeps a step within memory.maxBytes, which is not given; give it, skein-train doctor says what the step takes",
        },
      ]
    : []),
  ...(recompute !== "auto" && maxBytes !== undefined
    ? [
        {
          path: ["memory", "maxBytes"],
          rule: `maxBytes is the bound of recompute: auto and has no effect with recompute: ${recompute}; use recompute: auto or leave it out`,
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
