import { leafPaths } from "@skein/tensor-core";
import { deferredStep } from "./deferred-step.ts";
import type { TrainStep } from "./loss-and-gradients.ts";
import type { Parts, StepKind } from "./train-state.ts";
import { wholeStep } from "./whole-step.ts";

/** Returns the descriptions of the entries of `StepResult.finite`. @param params Trained parameters. */
export const finiteNames = (params: unknown): string[] => [
  "the loss",
  ...leafPaths(params).map((path) => `the gradient of ${path}`),
];

/** Computes one training step of a kind: this rank's loss and gradients, their exchange, and the update. Traced. */
export const trainStep = (parts: Parts, kind: StepKind): TrainStep =>
  parts.overlap === "dear" ? deferredStep(parts, kind) : wholeStep(parts, kind);
