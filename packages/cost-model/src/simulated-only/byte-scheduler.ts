import { ArgumentError } from "@skein/tensor-core";
import { checkProfile, type GradientProfile } from "../gradient-profile.ts";
import type { CollectiveModel } from "../collective-model.ts";
import { type PartitionPlan, priorityTimeline } from "./priority-timeline.ts";
import { kibibytes } from "../units.ts";

/**
 * Divides every gradient into partitions of `partitionBytes`; the last partition of a tensor may be smaller. Tensors
 * that the next forward pass needs first have the highest priority.
 *
 * @param partitionBytes Size of a partition; must be a multiple of the element size, so that no element is divided.
 * Infinity: one partition per tensor.
 * @throws ArgumentError if the size is not positive.
 */
export const partitionsOfSize = (profile: GradientProfile, partitionBytes: number): PartitionPlan => {
  checkProfile(profile);
  if (!(partitionBytes > 0))
    throw new ArgumentError(`the partition size is ${partitionBytes} bytes, but must be above 0; use a positive size`);
  return profile.tensors.flatMap(({ path, bytes }, i) =>
    Array.from({ length: Math.max(1, Math.ceil(bytes / partitionBytes)) }, (_, part) => ({
      path,
      bytes: bytes <= partitionBytes ? bytes : Math.min(partitionBytes, bytes - part * partitionBytes),
      priority: profile.tensors.length - 1 - i,
    })),
  );
};

export interface ByteSchedulerOptions {
  /**
   * Partition sizes to try in addition to unpartitioned tensors. Default: powers of two from 64 KiB to the size of the
   * largest tensor.
   */
  readonly partitionBytes?: readonly number[];
}

/**
 * Chooses the size of gradient partitions with priorities (ByteScheduler): the size with the shortest iteration in
 * `priorityTimeline`, or the largest such size. With small partitions, urgent gradients, which the forward pass needs
 * first, wait less for other gradients, but each partition costs a start-up.
 *
 * Only for simulations; jobs cannot run such a plan. In this project, a step ends when all its gradients have been
 * received, because a gradient that is not finite stops the step. So priorities cannot make the next forward pass start
 * earlier. The option `overlap: dear` overlaps half of each exchange with the forward pass.
 *
 * Cost: O(sizes · tensors · partitions).
 *
 * @throws ArgumentError if the model or the profile has impossible values, or a size is not positive.
 *
 * @example
 * ```ts
 * const seconds = { backwardSeconds: 1, forwardSeconds: 1 };
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, ...seconds }));
 * const model = { startupSeconds: 0.1, secondsPerByte: 1e-3 };
 * console.log(planByteScheduler({ tensors }, model, { partitionBytes: [2_000] }).length); // 4
 * ```
 * Source: Peng et al. 2019, SOSP (ByteScheduler), which tunes the size by measured iterations, as with `suggestTrial`.
 */
export const planByteScheduler = (
  profile: GradientProfile,
  model: CollectiveModel,
  { partitionBytes }: ByteSchedulerOptions = {},
): PartitionPlan => {
  const largest = Math.max(0, ...profile.tensors.map(({ bytes }) => bytes));
  const doublings = Math.max(0, Math.ceil(Math.log2(largest / kibibytes(64))));
  const sizes = partitionBytes ?? Array.from({ length: doublings }, (_, i) => kibibytes(64) * 2 ** i);
  return [Infinity, ...sizes.toSorted((a, b) => b - a)]
    .map((size) => partitionsOfSize(profile, size))
    .map((plan) => ({ plan, seconds: priorityTimeline(profile, plan, model).iterationSeconds }))
    .reduce((best, other) => (other.seconds < best.seconds ? other : best)).plan;
};
