import { leafPaths } from "@skein/tensor-core";
import { deferredStep } from "./deferred-step.ts";
import type { TrainStep } from "./loss-and-gradients.ts";
import type { Parts, StepKind } from "./train-state.ts";
import { wholeStep } from "./whole-step.ts";

/** Returns a description of each entry of `StepResult.finite`. @param params Trained parameters. */
export const finiteNames = (params: unknown): string[] => [
  "the loss",
  ...leafPaths(params).map((path) => `the gradient of ${path}`),
];

/**
 * Computes one training step of the given kind: loss and gradients of this rank, gradient exchange, and update. Traced.
 */
export const trainStep = (parts: Parts, kind: StepKind): TrainStep =>
  parts.overlap === "dear" ? deferredStep(parts, kind) : wholeStep(parts, kind);
