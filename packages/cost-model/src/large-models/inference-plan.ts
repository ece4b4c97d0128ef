import { ArgumentError } from "@skein/tensor-core";
import type { ComputeType } from "../hardware/hardware.ts";
import { checkShape, type ModelShape, type TransformerShape } from "./model-shape.ts";
import { operatorsOf, partsOf, sumOver } from "./modules.ts";
import type { PassSetting, QuantizedType } from "./operator.ts";
import {
  checkChoice,
  checkCount,
  checkImagesOnly,
  checkLength,
  checkNames,
  checkTensorParallel,
} from "./configuration-checks.ts";

/**
 * Storage type of a model's weights. With `i8` or `i4` only the matrices of layers are quantized; all other weights are
 * stored as f16, and products are computed in f16.
 */
export type WeightType = "f32" | "f16" | "bf16" | QuantizedType;

/** Settings of an inference estimate. */
export interface InferenceConfiguration {
  readonly task: "inference";
  /** Number of sequences or images that one replica processes together. */
  readonly batch: number;
  /**
   * Number of prompt tokens per sequence. Default: 512, or the model's context length if that is shorter. Not allowed
   * for image models.
   */
  readonly promptTokens?: number | undefined;
  /**
   * Number of generated tokens per sequence. Default: 128, or the rest of the context if that is shorter. Not allowed
   * for image models.
   */
  readonly outputTokens?: number | undefined;
  /** Storage type of the weights. Default: f16. */
  readonly weights?: WeightType | undefined;
  /** Whether to use FlashAttention. Transformers only. Default: true. */
  readonly flashAttention?: boolean | undefined;
  /**
   * Number of ranks that share each layer. These ranks form a replica; all ranks are divided into replicas of this
   * size. Default: 1.
   */
  readonly tensorParallel?: number | undefined;
}

/** An inference configuration with all defaults filled in. */
export interface InferencePlan {
  readonly batch: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly weights: WeightType;
  readonly flashAttention: boolean;
  readonly tensorParallel: number;
  readonly replicas: number;
}

/** Bytes in a rank's memory when the last token is generated, by category. */
export interface InferenceMemory {
  readonly weights: number;
  /** Bytes of keys and values in all layers, for all tokens except the last token. */
  readonly keyValueCache: number;
  /** Bytes of the largest operator result and its operands, estimated as twice the result. */
  readonly workspace: number;
}

const settings: { readonly [name in keyof Required<InferenceConfiguration>]: true } = {
  task: true,
  batch: true,
  promptTokens: true,
  outputTokens: true,
  weights: true,
  flashAttention: true,
  tensorParallel: true,
};

const weightTypes: readonly WeightType[] = ["f32", "f16", "bf16", "i8", "i4"];

const quantizedOf = (weights: WeightType): QuantizedType | undefined =>
  weights === "i8" || weights === "i4" ? weights : undefined;

/**
 * Checks a configuration, and fills in its defaults.
 *
 * @throws ArgumentError if a setting contradicts another setting, the model or the number of ranks, or would have no
 * effect.
 */
export const inferencePlan = (
  shape: ModelShape,
  configuration: InferenceConfiguration,
  ranks: number,
): InferencePlan => {
  checkShape(shape);
  checkNames("inference", configuration, Object.keys(settings));
  checkCount("ranks", ranks);
  const { batch, weights = "f16", flashAttention = true, tensorParallel = 1 } = configuration;
  checkCount("batch", batch);
  checkChoice("weights", weights, weightTypes);
  if (shape.kind === "residual") {
    const { promptTokens, outputTokens, flashAttention, tensorParallel } = configuration;
    checkImagesOnly(shape, { promptTokens, outputTokens, flashAttention, tensorParallel });
    if (quantizedOf(weights) !== undefined)
      throw new ArgumentError(`weights is ${weights}, but ${shape.name} has no layers to quantize; use f16`);
    return {
      batch,
      weights,
      promptTokens: 1,
      outputTokens: 0,
      flashAttention: true,
      tensorParallel: 1,
      replicas: ranks,
    };
  }
  const { contextLength } = shape;
  const { promptTokens = Math.min(512, contextLength) } = configuration;
  checkLength(shape, "promptTokens", promptTokens);
  const { outputTokens = Math.max(1, Math.min(128, contextLength - promptTokens)) } = configuration;
  checkCount("outputTokens", outputTokens);
  // The last generated token is not an input of the model.
  checkLength(shape, "promptTokens + outputTokens - 1", promptTokens + outputTokens - 1);
  checkTensorParallel(shape, tensorParallel, ranks);
  return {
    batch,
    promptTokens,
    outputTokens,
    weights,
    flashAttention,
    tensorParallel,
    replicas: ranks / tensorParallel,
  };
};

/**
 * Returns the parameters of one pass of an inference configuration on one rank, such as sequence length and data types.
 */
export const inferenceSetting = (plan: InferencePlan, length: number, context: number): PassSetting => {
  const quantized = quantizedOf(plan.weights);
  const type: ComputeType = quantized === undefined ? plan.weights : "f16";
  const valueBytes = type === "f32" ? 4 : 2;
  const { batch, flashAttention, tensorParallel } = plan;
  return {
    batch,
    length,
    context,
    type,
    valueBytes,
    weightBytes: valueBytes,
    flashAttention,
    tensorParallel,
    training: false,
    quantized,
  };
};

/**
 * Computes the bytes of keys and values per token in a rank's memory: 2 · layers · key/value heads · head width, times
 * 4 or 2 bytes.
 */
export const keyValueBytesPerToken = (
  shape: TransformerShape,
  plan: Pick<InferencePlan, "weights" | "tensorParallel">,
): number => {
  const heads = Math.max(1, shape.keyValueHeads / plan.tensorParallel);
  return 2 * shape.layers * heads * (shape.width / shape.heads) * (plan.weights === "f32" ? 4 : 2);
};

/** Computes the bytes in a rank's memory at the end of a batch, when the key/value cache is largest. */
export const inferenceMemory = (shape: ModelShape, plan: InferencePlan): InferenceMemory => {
  const { promptTokens, outputTokens, batch } = plan;
  const parts = partsOf(shape, inferenceSetting(plan, promptTokens, promptTokens));
  const outputs = parts.flatMap(operatorsOf).map(({ outputBytes }) => outputBytes);
  const cached =
    shape.kind === "transformer" ? batch * (promptTokens + outputTokens - 1) * keyValueBytesPerToken(shape, plan) : 0;
  return {
    weights: sumOver(parts, ({ weightBytes }) => weightBytes),
    keyValueCache: cached,
    workspace: 2 * Math.max(...outputs),
  };
};
