import type { Tensor } from "@skein/tensor-core";
import type { BatchTree } from "../task/task.ts";
import { deferredPart, settle } from "./deferred-step.ts";
import {
  accumulate,
  type Accumulated,
  lookAhead,
  needsWhole,
  type PassAhead,
  type StepInputs,
  type StepResult,
} from "./loss-and-gradients.ts";
import type { Parts, StepKind, TrainState } from "./train-state.ts";
import { trainStep } from "./train-step.ts";

/**
 * Computes one training step on all microbatches of a rank's batch, in a single graph. Traced. A run compiles each
 * microbatch separately; this graph shows the complete computation.
 */
export const stepOverParts = (
  parts: Parts,
  kind: StepKind,
): ((state: TrainState<Tensor>, ...batches: readonly BatchTree[]) => StepResult) => {
  const lookAheadPart = lookAhead(parts);
  const earlier = accumulate(parts, kind.mode);
  const last = trainStep(parts, kind);
  return (given, ...batches) => {
    if (batches.length === 1) return last(given, batches[0]!);
    const isLate = parts.overlap === "dear";
    const settled = isLate && needsWhole(parts) ? settle(parts, parts.compressorAt(0))(given) : undefined;
    const start = settled?.state ?? given;
    const { rankCount, model } = batches.reduce<PassAhead<Tensor> | undefined>(
      (seen, part) => lookAheadPart(start, part, seen),
      undefined,
    )!;
    const inputs: StepInputs<Tensor> = { wholeBatch: { rankCount, model } };
    const [first, others] = [batches[0]!, batches.slice(1, -1)];
    const started =
      isLate && settled === undefined
        ? deferredPart(parts, { ...kind, compressor: parts.compressorAt(0) })(given, first, inputs)
        : {
            state: start,
            before: { ...earlier(start, first, inputs), ...(settled && { update: settled.update }) },
          };
    const before = others.reduce<Accumulated<Tensor>>(
      (done, part) => earlier(started.state, part, { ...inputs, before: done }),
      started.before,
    );
    return last(started.state, batches.at(-1)!, { ...inputs, before });
  };
};
