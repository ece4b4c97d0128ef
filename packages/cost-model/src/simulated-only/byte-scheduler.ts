import { ArgumentError } from "@skein/tensor-core";
import { checkProfile, type GradientProfile } from "../gradient-profile.ts";
import type { CollectiveModel } from "../collective-model.ts";
import { type PartitionPlan, priorityTimeline } from "./priority-timeline.ts";
import { kibibytes } from "../units.ts";

/**
 * Cut every gradient into pieces of at most `partitionBytes`, the last of a tensor smaller, and give those priority
 * that the next forward pass needs first.
 *
 * @param partitionBytes a multiple of the element size, so that no element is cut; Infinity cuts nothing.
 * @throws ArgumentError for a size that is not positive.
 */
export const partitionsOfSize = (profile: GradientProfile, partitionBytes: number): PartitionPlan => {
  checkProfile(profile);
  if (!(partitionBytes > 0))
    throw new ArgumentError(`partitions of ${partitionBytes} bytes were asked for; use a positive size`);
  return profile.tensors.flatMap(({ path, bytes }, i) =>
    Array.from({ length: Math.max(1, Math.ceil(bytes / partitionBytes)) }, (_, part) => ({
      path,
      bytes: bytes <= partitionBytes ? bytes : Math.min(partitionBytes, bytes - part * partitionBytes),
      priority: profile.tensors.length - 1 - i,
    })),
  );
};

export interface ByteSchedulerOptions {
  /** Sizes to try beside not cutting at all. Default: powers of two from 64 KiB to the largest tensor. */
  readonly partitionBytes?: readonly number[];
}

/**
 * Choose how gradients are cut into partitions with priorities (ByteScheduler): of the sizes tried, the one with the
 * shortest iteration in `priorityTimeline`, the larger of equals. Small partitions let what the forward pass needs
 * first overtake sooner; each costs a start-up.
 *
 * For the cost model only; no job runs such a plan. A training step here ends when all its gradients are in, since one
 * that is not finite stops it, so what overtakes gains nothing before the next forward pass. `overlap: dear` overlaps
 * with that in halves.
 *
 * Cost: O(sizes · tensors · partitions).
 *
 * @throws ArgumentError for a model or profile with impossible figures, or a size that is not positive.
 *
 * Source: Peng et al. 2019, SOSP (ByteScheduler), which tunes the size by measured iterations: `suggest` does that.
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
