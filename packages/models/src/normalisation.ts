import { groupNorm, type GroupNormOptions, layerNorm, ones, rmsNorm, type Tensor, zeros } from "@skein/tensor-core";

/** What root-mean-square normalisation multiplies with, [D]. */
export interface RmsNormParams {
  readonly gain: Tensor;
}

/** What layer, group and batch normalisation multiply with and add, [C] or [D] each. */
export interface NormParams extends RmsNormParams {
  readonly shift: Tensor;
}

const initNorm = (size: number): NormParams => ({ gain: ones([size]), shift: zeros([size]) });

/** Gain 1 and shift 0 for each of `width` entries of a row. */
export const initLayerNorm = (width: number): NormParams => initNorm(width);

/** `layerNorm` over the last dimension, [..., width]. */
export const applyLayerNorm = ({ gain, shift }: NormParams, x: Tensor, epsilon = 1e-5): Tensor =>
  layerNorm(x, gain, shift, epsilon);

/** Gain 1 for each of `width` entries of a row. */
export const initRmsNorm = (width: number): RmsNormParams => ({ gain: ones([width]) });

/** `rmsNorm` over the last dimension, [..., width]. */
export const applyRmsNorm = ({ gain }: RmsNormParams, x: Tensor, epsilon = 1e-5): Tensor => rmsNorm(x, gain, epsilon);

/** Gain 1 and shift 0 for each channel. */
export const initGroupNorm = (channels: number): NormParams => initNorm(channels);

/** `groupNorm` of [N, ..., channels]. */
export const applyGroupNorm = ({ gain, shift }: NormParams, x: Tensor, options: GroupNormOptions): Tensor =>
  groupNorm(x, gain, shift, options);
