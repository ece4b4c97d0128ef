import { groupNorm, type GroupNormOptions, layerNorm, ones, rmsNorm, type Tensor, zeros } from "@skein/tensor-core";

/** Parameters of RMS normalization: `gain`, [D]. */
export interface RmsNormParams {
  readonly gain: Tensor;
}

/** Parameters of layer, group and batch normalization: `gain` and `shift`, each [C] or [D]. */
export interface NormParams extends RmsNormParams {
  readonly shift: Tensor;
}

const initNorm = (size: number): NormParams => ({ gain: ones([size]), shift: zeros([size]) });

/** Returns layer norm parameters for `width` features: gain 1 and shift 0. */
export const initLayerNorm = (width: number): NormParams => initNorm(width);

/** Applies `layerNorm` over the last dimension, [..., width]. */
export const applyLayerNorm = ({ gain, shift }: NormParams, x: Tensor, epsilon = 1e-5): Tensor =>
  layerNorm(x, gain, shift, epsilon);

/** Returns RMS norm parameters for `width` features: gain 1. */
export const initRmsNorm = (width: number): RmsNormParams => ({ gain: ones([width]) });

/** Applies `rmsNorm` over the last dimension, [..., width]. */
export const applyRmsNorm = ({ gain }: RmsNormParams, x: Tensor, epsilon = 1e-5): Tensor => rmsNorm(x, gain, epsilon);

/** Normalization layer of a transformer. `init` returns the initial parameters; `apply` normalizes x, [..., width]. */
export interface Norm<Params> {
  init(): Params;
  apply(params: Params, x: Tensor): Tensor;
}

export const layerNormPart = (width: number, epsilon?: number): Norm<NormParams> => ({
  init: () => initLayerNorm(width),
  apply: (params, x) => applyLayerNorm(params, x, epsilon),
});

export const rmsNormPart = (width: number, epsilon?: number): Norm<RmsNormParams> => ({
  init: () => initRmsNorm(width),
  apply: (params, x) => applyRmsNorm(params, x, epsilon),
});

/** Returns group norm parameters: gain 1 and shift 0 per channel. */
export const initGroupNorm = (channels: number): NormParams => initNorm(channels);

/** Applies `groupNorm` to [N, ..., channels]. */
export const applyGroupNorm = ({ gain, shift }: NormParams, x: Tensor, options: GroupNormOptions): Tensor =>
  groupNorm(x, gain, shift, options);
