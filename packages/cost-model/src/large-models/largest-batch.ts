import { ArgumentError } from "@skein/tensor-core";
import type { HardwareFile } from "../hardware/hardware.ts";
import type { ModelShape } from "./model-shape.ts";
import { type TrainingConfiguration, trainingPlan } from "./training-configuration.ts";
import { deviceBytes, trainingMemory } from "./training-memory.ts";

/** Largest batch that fits into a rank's memory. */
export interface LargestBatch {
  /** Number of sequences or images in the largest batch; 0 if not even a batch of one fits. */
  readonly batch: number;
  /** Bytes needed for the largest batch, or for a batch of one if no batch fits. */
  readonly bytes: number;
  /** Bytes missing for a batch of one; 0 if a batch of one fits. */
  readonly missingBytes: number;
}

/** Upper bound of the batch search. Reached only if memory is practically unlimited. */
const most = 2 ** 30;

/**
 * Finds the largest batch whose bytes do not exceed a capacity, by doubling and then bisection. Bytes must not decrease
 * with the batch.
 *
 * Cost: O(log batch) calls of `bytesOf`.
 *
 * @throws ArgumentError unless the capacity is above 0.
 */
export const largestBatch = (bytesOf: (batch: number) => number, capacityBytes: number): LargestBatch => {
  if (!(capacityBytes > 0))
    throw new ArgumentError(
      `the memory capacity is ${capacityBytes} bytes, but must be above 0; correct memoryBytes of the device`,
    );
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
 * Finds the largest training batch per rank that fits into a device's memory.
 *
 * @throws ArgumentError if the configuration is invalid.
 * @example
 * ```ts
 * const { batch } = largestTrainingBatch(modelNamed("resnet-50"), { task: "training" }, shippedHardware[0]!);
 * console.log(batch > 1); // true
 * ```
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
