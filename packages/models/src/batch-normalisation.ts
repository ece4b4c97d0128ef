import {
  add,
  batchNorm,
  batchNormInference,
  elementCount,
  multiply,
  ones,
  stopGradient,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import type { NormParams } from "./normalisation.ts";

/** Parameters of batch normalization: gain and shift of each channel, [C]. */
export type BatchNormParams = NormParams;

/** Running statistics of each channel, f32 [C]. */
export interface BatchNormState {
  readonly mean: Tensor;
  readonly variance: Tensor;
}

/** Weight of the current batch in the running statistics; PyTorch's default. */
const momentum = 0.1;

/**
 * Returns the initial batch norm parameters and statistics for inputs [..., channels]: gain 1, shift 0, running mean 0
 * and running variance 1.
 */
export const initBatchNorm = (
  channels: number,
): { readonly params: BatchNormParams; readonly state: BatchNormState } => ({
  params: { gain: ones([channels]), shift: zeros([channels]) },
  state: { mean: zeros([channels]), variance: ones([channels]) },
});

/**
 * Applies batch normalization to [N, H, W, C]. Training normalizes with the statistics of the batch and updates the
 * running statistics (`r ← 0.9r + 0.1s`, with the variance divided by n − 1 as in PyTorch); evaluation normalizes with
 * the running statistics.
 *
 * Source: Ioffe and Szegedy 2015, arXiv 1502.03167.
 */
export const applyBatchNorm = (
  { gain, shift }: BatchNormParams,
  state: BatchNormState,
  x: Tensor,
  train: boolean,
): readonly [Tensor, BatchNormState] => {
  if (!train) return [batchNormInference(x, gain, shift, state.mean, state.variance), state];
  const { y, mean, variance } = batchNorm(x, gain, shift);
  const count = elementCount(x.shape.slice(0, -1));
  const blend = (running: Tensor, batch: Tensor, factor: number): Tensor =>
    stopGradient(add(multiply(running, 1 - momentum), multiply(batch, momentum * factor)));
  return [
    y,
    { mean: blend(state.mean, mean, 1), variance: blend(state.variance, variance, count / Math.max(count - 1, 1)) },
  ];
};
