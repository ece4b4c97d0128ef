import { operatorsOf, partsOf, sumOver } from "./modules.ts";
import type { ModelShape } from "./model-shape.ts";
import type { Operator, Part, PassSetting } from "./operator.ts";
import { precisions, stateBytes } from "./precision.ts";
import type { RecomputationMode, TrainingPlan } from "./training-configuration.ts";

/** Bytes in a rank's memory at the peak of a training step, by category. */
export interface TrainingMemory {
  readonly weights: number;
  readonly gradients: number;
  readonly optimizerStates: number;
  readonly activations: number;
  /** Bytes of the largest operator result and its gradient, plus the recomputed values of one layer. */
  readonly workspace: number;
  /** Bytes of gradient buckets in transit, plus the gathered weights of two parts with ZeRO-3. */
  readonly communicationBuffers: number;
  /** Bytes in the host's memory used by this rank. */
  readonly onHost: number;
}

/**
 * Size of a gradient bucket in bytes: the default of PyTorch's DistributedDataParallel. One bucket is filled while
 * another bucket is in transit.
 */
const bucketBytes = 25 * 2 ** 20;

/**
 * Returns the parameters of one pass of a training configuration on one rank, such as sequence length and data types.
 */
export const trainingSetting = (plan: TrainingPlan): PassSetting => {
  const { type, activation, weight } = precisions[plan.precision];
  const { batchPerRank: batch, sequenceLength: length, flashAttention, tensorParallel, quantized, adapters } = plan;
  return {
    batch,
    length,
    context: length,
    type,
    valueBytes: activation,
    weightBytes: weight,
    flashAttention,
    tensorParallel,
    training: true,
    quantized,
    adapters,
  };
};

const partSum = (part: Part, figure: (operator: Operator) => number): number =>
  operatorsOf(part).reduce((sum, operator) => sum + figure(operator), 0);

/** Returns the bytes that all parts save from forward to backward, and the extra bytes while one part is recomputed. */
const activationBytes = (
  parts: readonly Part[],
  recomputation: RecomputationMode,
): { readonly activations: number; readonly recomputed: number } => {
  let [activations, recomputed] = [0, 0];
  for (const part of parts) {
    const saved = partSum(part, ({ savedBytes }) => savedBytes);
    const dropped =
      recomputation === "none" || !part.recomputable
        ? 0
        : recomputation === "full"
          ? saved - part.inputBytes
          : partSum(part, ({ remadeBytes }) => remadeBytes);
    activations += part.repeats * (saved - dropped);
    recomputed = Math.max(recomputed, dropped);
  }
  return { activations, recomputed };
};

/**
 * Returns the largest total weight bytes of two consecutive parts, because one part is gathered while the previous part
 * computes.
 */
const gatheredBytes = (parts: readonly Part[]): number => {
  const units = parts.flatMap((part) => {
    const bytes = partSum(part, ({ weightBytes }) => weightBytes);
    // Two repeats per part cover all kinds of consecutive pairs.
    return Array.from({ length: Math.min(2, part.repeats) }, () => bytes);
  });
  return Math.max(...units.map((bytes, index) => bytes + (units[index + 1] ?? 0)));
};

/**
 * Computes the bytes in a rank's memory. With Adam, mixed precision and d data-parallel ranks, weights, gradients and
 * optimizer states take 2 + 2 + 12 bytes per parameter. ZeRO-1 takes 2 + 2 + 12/d, ZeRO-2 2 + (2 + 12)/d, ZeRO-3 16/d.
 * Activations, workspace and buffers are added.
 *
 * Source: Rajbhandari et al. 2019, arXiv 1910.02054, section 3.1 and figure 1; activations: Korthikanti et al. 2022,
 * arXiv 2205.05198.
 */
export const trainingMemory = (shape: ModelShape, plan: TrainingPlan): TrainingMemory => {
  const parts = partsOf(shape, trainingSetting(plan));
  const { dataParallel: d, zeroStage, precision, optimizer, offload } = plan;
  const trainable = sumOver(parts, (operator) => operator.trainable);
  const weightBytes = sumOver(parts, (operator) => operator.weightBytes);
  const gradientBytes = trainable * precisions[precision].gradient;
  const { activations, recomputed } = activationBytes(parts, plan.recomputation);
  const states = (trainable * stateBytes(precision, optimizer)) / (zeroStage >= 1 ? d : 1);
  const largestResult = Math.max(...parts.flatMap(operatorsOf).map(({ outputBytes }) => outputBytes));
  const buckets = d === 1 ? 0 : 2 * Math.min(bucketBytes, gradientBytes);
  const gathered = zeroStage === 3 ? gatheredBytes(parts) * (1 - 1 / d) : 0;
  return {
    weights: weightBytes / (zeroStage === 3 ? d : 1),
    gradients: gradientBytes / (zeroStage >= 2 ? d : 1),
    optimizerStates: offload === undefined ? states : 0,
    activations,
    workspace: 2 * largestResult + recomputed,
    communicationBuffers: buckets + gathered,
    onHost: offload === undefined ? 0 : states,
  };
};

/** Returns the total bytes in the device's memory. */
export const deviceBytes = ({ onHost: _, ...memory }: TrainingMemory): number =>
  Object.values(memory).reduce((sum, bytes) => sum + bytes, 0);
