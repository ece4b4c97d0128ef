import type { ComputeType, HardwareFile } from "../hardware/hardware.ts";
import type { InferencePlan } from "./inference-plan.ts";
import type { ModelShape } from "./model-shape.ts";
import { precisions } from "./precision.ts";
import type { TrainingPlan } from "./training-configuration.ts";

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

const ofHardware = ({ device }: HardwareFile, type: ComputeType): readonly string[] => [
  `Each kernel takes its start of ${(device.kernelStartSeconds * 1e6).toFixed(1)} µs, and the longer of flops and bytes at ${percent(device.assumedEfficiency)} of the device's peaks, or what was measured at about its size.`,
  `Peaks: ${device.source}.`,
  ...(device.flopsPerSecond[type] === undefined
    ? [`The device has no peak for ${type}, so that products are priced by its f32 peak.`]
    : []),
  "What is no product is priced by the f32 peak, and goes through memory once; neighbours are not fused.",
  "Memory of the runtime itself, and what an allocator wastes, are not counted.",
];

const ofContext = (shape: ModelShape, tokens: number): readonly string[] =>
  shape.kind === "transformer" && tokens > shape.contextLength
    ? [`Sequences of ${tokens} tokens are longer than the ${shape.contextLength} that the model was made for.`]
    : [];

const reductions: readonly string[] = [
  "Each part's gradients are all-reduced as they become ready, one after the other, behind the rest of the backward pass, which they do not slow.",
  "Each part's gradients are reduce-scattered behind the rest of the backward pass; nothing hides the all-gather of the new weights.",
  "Each part's gradients are reduce-scattered behind the rest of each backward pass; nothing hides the all-gather of the new weights.",
  "Weights are all-gathered part by part in both passes, one part ahead, and gradients reduce-scattered, behind what is computed meanwhile.",
];

/** Say what an estimate of training takes for granted, a sentence each. */
export const trainingAssumptions = (
  shape: ModelShape,
  plan: TrainingPlan,
  hardware: HardwareFile,
): readonly string[] => {
  const { zeroStage, dataParallel, tensorParallel, recomputation, offload, flashAttention, quantized, adapters } = plan;
  const transformer = shape.kind === "transformer";
  return [
    ...ofHardware(hardware, precisions[plan.precision].type),
    ...ofContext(shape, plan.sequenceLength),
    ...(transformer ? ["There is no dropout."] : []),
    ...(transformer && flashAttention
      ? ["FlashAttention skips masked scores; its backward pass takes 2.5 times the flops of its forward pass."]
      : []),
    ...(transformer && !flashAttention ? ["All scores are computed, masked ones too, and go through memory."] : []),
    ...(dataParallel > 1 ? [reductions[zeroStage]!] : []),
    ...(tensorParallel > 1
      ? ["Each layer's values are summed twice forward and twice backward among its ranks; nothing hides it."]
      : []),
    ...(recomputation === "full"
      ? ["Each layer keeps its input alone, and runs forward again before its backward pass."]
      : []),
    ...(recomputation === "selective"
      ? ["Attention keeps queries, keys and values, and runs forward again before its backward pass."]
      : []),
    ...(quantized === undefined
      ? []
      : [`Matrices of layers are ${quantized} with an f32 scale for each 64, and are made plain before each product.`]),
    ...(adapters === undefined
      ? []
      : ["Frozen weights have no gradients, but gradients of values go through all layers."]),
    ...(offload === undefined
      ? []
      : [
          "Gradients go to the host, which updates at the pace of its memory, and weights come back; nothing hides it.",
        ]),
  ];
};

/** Say what an estimate of inference takes for granted, a sentence each. */
export const inferenceAssumptions = (
  shape: ModelShape,
  plan: InferencePlan,
  hardware: HardwareFile,
): readonly string[] => {
  const { weights, tensorParallel, replicas, outputTokens } = plan;
  const quantized = weights === "i8" || weights === "i4";
  return [
    ...ofHardware(hardware, quantized ? "f16" : weights),
    ...ofContext(shape, plan.promptTokens + outputTokens),
    ...(shape.kind === "transformer"
      ? [
          "All sequences of a batch are equally long, begin together and end together.",
          "Prompts go through the model in one pass.",
        ]
      : []),
    ...(outputTokens > 1 ? ["A generated token takes what it takes when half of the output is there."] : []),
    ...(quantized
      ? [`Matrices of layers are read as ${weights} with an f32 scale for each 64, and multiplied as f16.`]
      : []),
    ...(tensorParallel > 1 ? ["Each layer's values are summed twice among its ranks; nothing hides it."] : []),
    ...(replicas > 1 ? [`${replicas} replicas work by themselves.`] : []),
  ];
};
