import { type LossScaleState, subtract, type Tensor } from "@skein/tensor-core";
import type { Parts, TrainState } from "./train-state.ts";

/**
 * Number of updates made before a state, u32 scalar: steps without the steps whose update was skipped. Traced. Actions
 * of the first update, or of every n-th update, depend on this number.
 */
export const updatesBefore = ({ lossScale }: Pick<Parts, "lossScale">, state: TrainState<Tensor>): Tensor =>
  lossScale === undefined ? state.step : subtract(state.step, (state.lossScale as LossScaleState).skippedSteps);
