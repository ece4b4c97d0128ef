export type { Config, OpenConfigOptions } from "./architecture.ts";
export { PretrainedError } from "./errors.ts";
export type { FloatDType } from "./float-bits.ts";
export type { ImageProcessor } from "./image-processor.ts";
export { modelOf, withNewHead } from "./open-config.ts";
export type { CarriedTensor, Pretrained, Stored, Weights } from "./pretrained.ts";
