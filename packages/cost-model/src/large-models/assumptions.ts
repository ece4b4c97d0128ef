import type { ComputeType, HardwareFile } from "../hardware/hardware.ts";
import type { InferencePlan } from "./inference-plan.ts";
import type { ModelShape } from "./model-shape.ts";
import { precisions } from "./precision.ts";
import type { TrainingPlan } from "./training-configuration.ts";

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

const hardwareAssumptions = ({ device }: HardwareFile, type: ComputeType): readonly string[] => [
  `Each kernel takes its start of ${(device.kernelStartSeconds * 1e6).toFixed(1)} µs, plus the longer of its flops and its bytes at ${percent(device.assumedEfficiency)} of the device's peaks, or at the measured efficiency of a similar size.`,
  `Peaks: ${device.source}.`,
  ...(device.flopsPerSecond[type] === undefined
    ? [`The device has no peak for ${type}, so matrix products are priced with its f32 peak.`]
    : []),
  "Other operators are priced with the f32 peak and go through memory once; neighboring operators are not fused.",
  "Memory of the runtime itself, and memory wasted by an allocator, are not counted.",
];

const contextAssumptions = (shape: ModelShape, tokens: number): readonly string[] =>
  shape.kind === "transformer" && tokens > shape.contextLength
    ? [`Sequences of ${tokens} tokens are longer than the model's context of ${shape.contextLength}.`]
    : [];

const reductions: readonly string[] = [
  "Each part's gradients are all-reduced as they become ready, one part after another, behind the rest of the backward pass, without slowing it.",
  "Each part's gradients are reduce-scattered behind the rest of the backward pass; the all-gather of the new weights is not hidden.",
  "Each part's gradients are reduce-scattered behind the rest of each backward pass; the all-gather of the new weights is not hidden.",
  "Weights are all-gathered part by part in both passes, one part ahead, and gradients reduce-scattered, both behind computation.",
];

/** Returns the assumptions of a training estimate, one sentence each. */
export const trainingAssumptions = (
  shape: ModelShape,
  plan: TrainingPlan,
  hardware: HardwareFile,
): readonly string[] => {
  const { zeroStage, dataParallel, tensorParallel, recomputation, offload, flashAttention, quantized, adapters } = plan;
  const transformer = shape.kind === "transformer";
  return [
    ...hardwareAssumptions(hardware, precisions[plan.precision].type),
    ...contextAssumptions(shape, plan.sequenceLength),
    ...(transformer ? ["There is no dropout."] : []),
    ...(transformer && flashAttention
      ? ["FlashAttention skips masked scores; its backward pass takes 2.5 times the flops of its forward pass."]
      : []),
    ...(transformer && !flashAttention
      ? ["All scores are computed, masked scores included, and go through memory."]
      : []),
    ...(dataParallel > 1 ? [reductions[zeroStage]!] : []),
    ...(tensorParallel > 1
      ? ["Each layer's values are summed twice forward and twice backward over its ranks; this is not hidden."]
      : []),
    ...(recomputation === "full"
      ? ["Each layer keeps only its input, and runs forward again before its backward pass."]
      : []),
    ...(recomputation === "selective"
      ? ["Attention keeps queries, keys and values, and runs forward again before its backward pass."]
      : []),
    ...(quantized === undefined
      ? []
      : [
          `Matrices of layers are ${quantized} with an f32 scale per 64 values, and are dequantized before each product.`,
        ]),
    ...(adapters === undefined
      ? []
      : ["Frozen weights have no gradients, but gradients of activations go through all layers."]),
    ...(offload === undefined
      ? []
      : [
          "Gradients go to the host, which updates at the speed of its memory, and weights come back; this is not hidden.",
        ]),
  ];
};

/** Returns the assumptions of an inference estimate, one sentence each. */
export const inferenceAssumptions = (
  shape: ModelShape,
  plan: InferencePlan,
  hardware: HardwareFile,
): readonly string[] => {
  const { weights, tensorParallel, replicas, outputTokens } = plan;
  const quantized = weights === "i8" || weights === "i4";
  return [
    ...hardwareAssumptions(hardware, quantized ? "f16" : weights),
    ...contextAssumptions(shape, plan.promptTokens + outputTokens),
    ...(shape.kind === "transformer"
      ? [
          "All sequences of a batch have equal length, begin together and end together.",
          "Prompts go through the model in one pass.",
        ]
      : []),
    ...(outputTokens > 1 ? ["Each generated token takes the time of a token in the middle of the output."] : []),
    ...(quantized
      ? [`Matrices of layers are read as ${weights} with an f32 scale per 64 values, and multiplied as f16.`]
      : []),
    ...(tensorParallel > 1 ? ["Each layer's values are summed twice over its ranks; this is not hidden."] : []),
    ...(replicas > 1 ? [`${replicas} replicas work independently.`] : []),
  ];
};
