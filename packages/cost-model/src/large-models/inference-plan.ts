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
 * What a model's weights are stored as. With `i8` and `i4` the matrices of layers are, all else is f16, and products
 * are of f16.
 */
export type WeightType = "f32" | "f16" | "bf16" | QuantizedType;

/** How a model is used. */
export interface InferenceConfiguration {
  readonly task: "inference";
  /** Sequences or images at a time, of one replica. */
  readonly batch: number;
  /**
   * Tokens of each sequence's prompt. Default: 512, or the model's context where it is shorter. Images have none, and
   * no output either.
   */
  readonly promptTokens?: number | undefined;
  /** Tokens that are generated. Default: 128, or what the context leaves. */
  readonly outputTokens?: number | undefined;
  /** Default: f16. */
  readonly weights?: WeightType | undefined;
  /** Default: true. Transformers only. */
  readonly flashAttention?: boolean | undefined;
  /** Ranks that share each layer; the others hold replicas. Default: 1. */
  readonly tensorParallel?: number | undefined;
}

/** A configuration with all defaults filled in. */
export interface InferencePlan {
  readonly batch: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly weights: WeightType;
  readonly flashAttention: boolean;
  readonly tensorParallel: number;
  readonly replicas: number;
}

/** What lies in a rank's memory when the last token is generated. */
export interface InferenceMemory {
  readonly weights: number;
  /** Keys and values of all layers, of all tokens but the last one's. */
  readonly keyValueCache: number;
  /** The largest result with what it is made from. */
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
 * @throws ArgumentError for settings that contradict one another, the model or the number of ranks, or that would have
 * no effect.
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
  // The last token that is generated is not read again.
  checkLength(shape, "promptTokens and outputTokens less one", promptTokens + outputTokens - 1);
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

/** What a rank does in one pass of a plan. */
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
 * Count the bytes of keys and values that one token leaves in a rank's memory: 2 · layers · heads of keys and values ·
 * head width, of 4 or 2 bytes.
 */
export const keyValueBytesPerToken = (
  shape: TransformerShape,
  plan: Pick<InferencePlan, "weights" | "tensorParallel">,
): number => {
  const heads = Math.max(1, shape.keyValueHeads / plan.tensorParallel);
  return 2 * shape.layers * heads * (shape.width / shape.heads) * (plan.weights === "f32" ? 4 : 2);
};

/** Add up what a rank's memory holds at the end of a batch. */
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
