import { type LossScaleState, subtract, type Tensor } from "@skein/tensor-core";
import type { Parts, TrainState } from "./train-state.ts";

/**
 * Number of updates behind a state, u32 scalar: its steps without those whose update was skipped. Traced. Whatever
 * happens in the first update, or every so many updates, goes by this number.
 */
export const updatesBefore = ({ lossScale }: Pick<Parts, "lossScale">, state: TrainState<Tensor>): Tensor =>
  lossScale === undefined ? state.step : subtract(state.step, (state.lossScale as LossScaleState).skippedSteps);
