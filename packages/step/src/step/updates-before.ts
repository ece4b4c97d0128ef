import { type LossScaleState, subtract, type Tensor } from "@skein/tensor-core";
import type { Parts, TrainState } from "./train-state.ts";

/**
 * Computes the number of updates made so far, u32 scalar: completed steps minus steps whose update was skipped. Traced.
 * Actions at the first update, or at every n-th update, depend on this number.
 */
export const updatesBefore = ({ lossScale }: Pick<Parts, "lossScale">, state: TrainState<Tensor>): Tensor =>
  lossScale === undefined ? state.step : subtract(state.step, (state.lossScale as LossScaleState).skippedSteps);
