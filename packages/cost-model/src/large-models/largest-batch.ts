import { ArgumentError } from "@skein/tensor-core";
import type { HardwareFile } from "../hardware/hardware.ts";
import type { ModelShape } from "./model-shape.ts";
import { type TrainingConfiguration, trainingPlan } from "./training-configuration.ts";
import { deviceBytes, trainingMemory } from "./training-memory.ts";

/** The largest batch of a rank that fits into its memory. */
export interface LargestBatch {
  /** 0 where not even one fits. */
  readonly batch: number;
  /** Of that batch; of a batch of one where none fits. */
  readonly bytes: number;
  /** What a batch of one lacks; 0 where it fits. */
  readonly missingBytes: number;
}

/** More than any device holds: what a memory without end would give. */
const most = 2 ** 30;

/**
 * Find the largest batch whose bytes do not exceed a capacity, by doubling, then halving the gap; bytes must not fall
 * with the batch.
 *
 * Cost: O(log batch) questions.
 *
 * @throws ArgumentError unless the capacity is a number above 0.
 */
export const largestBatch = (bytesOf: (batch: number) => number, capacityBytes: number): LargestBatch => {
  if (!(capacityBytes > 0))
    throw new ArgumentError(`a memory of ${capacityBytes} bytes was given; it is a number above 0`);
  const one = bytesOf(1);
  if (one > capacityBytes) return { batch: 0, bytes: one, missingBytes: one - capacityBytes };
  let fits = 1;
  while (fits < most && bytesOf(2 * fits) <= capacityBytes) fits *= 2;
  let above = 2 * fits;
  while (above - fits > 1) {
    const middle = Math.floor((fits + above) / 2);
    if (bytesOf(middle) <= capacityBytes) fits = middle;
    else above = middle;
  }
  return { batch: fits, bytes: bytesOf(fits), missingBytes: 0 };
};

/**
 * Find the largest batch per rank that a model can be trained with on a device.
 *
 * @throws ArgumentError for a configuration that cannot be.
 */
export const largestTrainingBatch = (
  shape: ModelShape,
  configuration: Omit<TrainingConfiguration, "batchPerRank">,
  { device, topology }: HardwareFile,
): LargestBatch => {
  const plan = trainingPlan(shape, { ...configuration, batchPerRank: 1 }, topology);
  return largestBatch(
    (batchPerRank) => deviceBytes(trainingMemory(shape, { ...plan, batchPerRank })),
    device.memoryBytes,
  );
};
