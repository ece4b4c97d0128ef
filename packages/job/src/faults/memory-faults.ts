import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

const withBlocks: readonly Job["model"]["kind"][] = ["resnet18", "gpt", "pretrained"];

/** Returns the problems found in a job's memory options. */
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
