export { applyBatchNorm, type BatchNormParams, type BatchNormState, initBatchNorm } from "./batch-normalisation.ts";
export { cnn, type CnnOptions, type CnnParams } from "./cnn.ts";
export { gpt, type GptBlockParams, type GptOptions, type GptParams } from "./gpt.ts";
export { fans, glorotUniform, headNormal, heNormal } from "./initialisers.ts";
export type { Affine } from "./layers.ts";
export { type Metrics, metricsOf } from "./metrics.ts";
export { mlp, type MlpOptions, type MlpParams } from "./mlp.ts";
export { type LabelledBatch, labelledModel, type Model, type RunContext } from "./model.ts";
export { resnet18, type ResNet18Options, type ResNet18Params, type ResNet18State } from "./resnet18.ts";
