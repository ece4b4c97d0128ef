export { applyAfterPrefix, applyPrefix } from "./apply-after-prefix.ts";
export type { AttentionParams } from "./attention-layer.ts";
export { applyBatchNorm, type BatchNormParams, type BatchNormState, initBatchNorm } from "./batch-normalisation.ts";
export { bert, type BertHead, type BertOptions, type BertParams } from "./bert.ts";
export { cnn, type CnnOptions, type CnnParams } from "./cnn.ts";
export type { FusedAttentionParams } from "./fused-attention.ts";
export { gpt } from "./gpt.ts";
export type {
  FeedForwardApplied,
  FeedForwardContext,
  FeedForwardLayer,
  FeedForwardReport,
  GptBlockParams,
  GptExperts,
  GptExpertsState,
  GptNormParams,
  GptOptions,
  GptParams,
  GptState,
} from "./gpt-options.ts";
export { gpt2, type Gpt2Options, type Gpt2Params } from "./gpt2.ts";
export { fans, glorotUniform, headNormal, heNormal } from "./initialisers.ts";
export {
  type Affine,
  applyConv2d,
  dense,
  dropWhileTraining,
  initConv2d,
  initDense,
  initEmbedding,
  type Initialiser,
  type LayerOptions,
  pixels,
} from "./layers.ts";
export type { TransformerBlockParams } from "./layer-norm-stack.ts";
export { llama, type LlamaBlockParams, type LlamaOptions, type LlamaParams } from "./llama.ts";
export { divideOrZero, type LossResult, lossResult, type LossSum } from "./loss-sum.ts";
export { type Metrics, metricsOf, type Ratio, rowMask, sumOfRows, type Sums } from "./metrics.ts";
export { mlp, type MlpOptions, type MlpParams } from "./mlp.ts";
export {
  type InputsOf,
  type LabelledBatch,
  labelledModel,
  type LogitsFacts,
  type LossOptions,
  type Model,
  type ModelExperts,
  type RunContext,
  type MicrobatchStates,
  type WholeBatchState,
} from "./model.ts";
export {
  applyGroupNorm,
  applyLayerNorm,
  applyRmsNorm,
  initGroupNorm,
  initLayerNorm,
  initRmsNorm,
  type NormParams,
  type RmsNormParams,
} from "./normalisation.ts";
export type { KeyValues, Past } from "./past.ts";
export type { Projection } from "./projection.ts";
export type { Recompute } from "./recompute.ts";
export { inputsOf, type RowLosses, rowLossModel } from "./row-loss-model.ts";
export { resnet, type ResNetOptions, type ResNetParams, type ResNetState } from "./resnet.ts";
export { type ChannelStatistics, normalised } from "./normalised.ts";
export { resnet18, type ResNet18Options, type ResNet18Params, type ResNet18State } from "./resnet18.ts";
export {
  dropOwnPositions,
  enterColumnParallel,
  gatherPositions,
  leaveRowParallel,
  ownPositions,
  type TensorParallel,
} from "./tensor-parallel.ts";
export type { TokenParams } from "./token-embedding.ts";
export { vit, type VitOptions, type VitParams } from "./vit.ts";
