import type { Aggregator } from "@skein/compressors";
import { leafPaths } from "@skein/tensor-core";
import { deferredStep } from "./deferred-step.ts";
import type { TrainStep } from "./loss-and-gradients.ts";
import type { Parts } from "./train-state.ts";
import { wholeStep } from "./whole-step.ts";

/** What each entry of `StepResult.finite` speaks of. */
export const finiteNames = (params: unknown): string[] => [
  "the loss",
  ...leafPaths(params).map((path) => `the gradient of ${path}`),
];

/** One training step: this rank's loss and gradients, their exchange by `compressor`, the update. Traced. */
export const trainStep = (parts: Parts, compressor: Aggregator): TrainStep =>
  parts.overlap === "dear" ? deferredStep(parts, compressor) : wholeStep(parts, compressor);
