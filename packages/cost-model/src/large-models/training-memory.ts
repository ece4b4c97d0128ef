import { operatorsOf, partsOf, sumOver } from "./modules.ts";
import type { ModelShape } from "./model-shape.ts";
import type { Operator, Part, PassSetting } from "./operator.ts";
import { precisions, stateBytes } from "./precision.ts";
import type { Recomputation, TrainingPlan } from "./training-configuration.ts";

/** What lies in a rank's memory in a training step, at its fullest. */
export interface TrainingMemory {
  readonly weights: number;
  readonly gradients: number;
  readonly optimizerStates: number;
  readonly activations: number;
  /** The largest result with its gradient, and with recomputation what one layer keeps while it is made again. */
  readonly workspace: number;
  /** Buckets of gradients under way, and with ZeRO-3 the weights of two parts that are gathered. */
  readonly communicationBuffers: number;
  /** In the host's memory, for this rank. */
  readonly onHost: number;
}

/**
 * Buckets of gradients, of which one is filled while another travels. Default of PyTorch's DistributedDataParallel: 25
 * MiB.
 */
const bucketBytes = 25 * 2 ** 20;

/** What a rank does in one pass of a plan. */
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

/** What the parts keep from forward to backward, and what making one of them again needs beside that. */
const activationBytes = (
  parts: readonly Part[],
  recomputation: Recomputation,
): { readonly kept: number; readonly again: number } => {
  let [kept, again] = [0, 0];
  for (const part of parts) {
    const saved = partSum(part, ({ savedBytes }) => savedBytes);
    const dropped =
      recomputation === "none" || !part.recomputable
        ? 0
        : recomputation === "full"
          ? saved - part.inputBytes
          : partSum(part, ({ remadeBytes }) => remadeBytes);
    kept += part.repeats * (saved - dropped);
    again = Math.max(again, dropped);
  }
  return { kept, again };
};

/** Bytes of the weights of two parts that follow one another: one computes, the other is being gathered. */
const gatheredBytes = (parts: readonly Part[]): number => {
  const units = parts.flatMap((part) => {
    const bytes = partSum(part, ({ weightBytes }) => weightBytes);
    // Two equal ones in a row show all pairs that there are.
    return Array.from({ length: Math.min(2, part.repeats) }, () => bytes);
  });
  return Math.max(...units.map((bytes, index) => bytes + (units[index + 1] ?? 0)));
};

/**
 * Add up what a rank's memory holds: with d data ranks, Adam and mixed precision 2 + 2 + 12 bytes for each parameter;
 * ZeRO-1 2 + 2 + 12/d, ZeRO-2 2 + (2 + 12)/d, ZeRO-3 16/d; and activations, workspace and buffers.
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
  const { kept, again } = activationBytes(parts, plan.recomputation);
  const states = (trainable * stateBytes(precision, optimizer)) / (zeroStage >= 1 ? d : 1);
  const largestResult = Math.max(...parts.flatMap(operatorsOf).map(({ outputBytes }) => outputBytes));
  const buckets = d === 1 ? 0 : 2 * Math.min(bucketBytes, gradientBytes);
  const gathered = zeroStage === 3 ? gatheredBytes(parts) * (1 - 1 / d) : 0;
  return {
    weights: weightBytes / (zeroStage === 3 ? d : 1),
    gradients: gradientBytes / (zeroStage >= 2 ? d : 1),
    optimizerStates: offload === undefined ? states : 0,
    activations: kept,
    workspace: 2 * largestResult + again,
    communicationBuffers: buckets + gathered,
    onHost: offload === undefined ? 0 : states,
  };
};

/** All that lies in the device's memory. */
export const deviceBytes = ({ onHost: _, ...memory }: TrainingMemory): number =>
  Object.values(memory).reduce((sum, bytes) => sum + bytes, 0);
