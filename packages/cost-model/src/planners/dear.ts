import { ArgumentError } from "@skein/tensor-core";
import { backwardSeconds, checkProfile, type GradientProfile, plannedBuckets } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds, halfOf } from "../collective-model.ts";
import { type CollectiveSpan, inTurn, type Timeline } from "../timeline.ts";

/** What the halves of an all-reduce take by the bytes of the whole vector. */
export interface HalvesModel {
  readonly reduceScatter: CollectiveModel;
  readonly allGather: CollectiveModel;
}

export interface DearTimelineOptions {
  /**
   * "queued": at the barrier all are issued, in the order of the forward pass. "one-ahead": the next is issued when the
   * forward pass reaches the bucket before, as the released code does; never faster. Default: "queued".
   */
  readonly allGathers?: "queued" | "one-ahead";
}

/** Halves of an all-reduce, half its time each. */
export const halvesOf = (allReduce: CollectiveModel): HalvesModel => ({
  reduceScatter: halfOf(allReduce),
  allGather: halfOf(allReduce),
});

/**
 * Fill buckets in the order of the forward pass up to `bucketBytes`; a tensor above that size has a bucket of its own.
 * The bucket that the forward pass needs first is the fullest then, not what is left over.
 *
 * @returns the plan in ready order, last bucket of the forward pass first.
 * @throws ArgumentError for a size that is not positive.
 *
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR), §IV.
 */
export const planDear = (profile: GradientProfile, bucketBytes: number): BucketPlan => {
  checkProfile(profile);
  if (!(bucketBytes > 0))
    throw new ArgumentError(`planDear: buckets of ${bucketBytes} bytes were asked for; use a positive size`);
  const buckets: string[][] = [];
  let filled = 0;
  for (const { path, bytes } of profile.tensors.toReversed()) {
    if (buckets.length === 0 || filled + bytes > bucketBytes) {
      buckets.push([]);
      filled = 0;
    }
    buckets.at(-1)!.push(path);
    filled += bytes;
  }
  return buckets.map((bucket) => bucket.reverse()).reverse();
};

/**
 * Simulate DeAR: each bucket is reduce-scattered during the backward pass; after a barrier the all-gathers follow in
 * the order of the forward pass, each tensor's forward waiting for its bucket.
 *
 *     RS_start(k) = max(RS_end(k − 1), ready(k)),   B = max(t_b, RS_end of the last)
 *     AG_start(first) = B,   AG_start(g + 1) = AG_end(g),   FF(g) starts at max(FF_end(g − 1), AG_end(g))
 *
 * T_iter ≥ max(t_f, all AG) + max(t_b, all RS). Where T_RS + T_AG = T_AR and the all-gathers after the first hide
 * behind the forward pass, it is no longer than wait-free backpropagation with the same buckets. Elsewhere it may be:
 * an all-reduce that backward hides whole is half exposed by a forward pass that is too short.
 *
 * @throws ArgumentError for a plan that does not fit the profile, or a model or profile with impossible figures.
 *
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR).
 */
export const dearTimeline = (
  profile: GradientProfile,
  plan: BucketPlan,
  { reduceScatter, allGather }: HalvesModel,
  { allGathers = "queued" }: DearTimelineOptions = {},
): Timeline => {
  const buckets = plannedBuckets(profile, plan);
  const scatters = inTurn("reduce-scatter", buckets, reduceScatter);
  const backwardEndSeconds = backwardSeconds(profile);
  const barrier = Math.max(backwardEndSeconds, scatters.at(-1)?.endSeconds ?? 0);
  const bucketOfPath = new Map(plan.flatMap((paths, bucket) => paths.map((path) => [path, bucket] as const)));

  const forwardTensors = profile.tensors
    .toReversed()
    .map(({ path, forwardSeconds = 0 }) => ({ bucket: bucketOfPath.get(path)!, forwardSeconds }));
  // Buckets in the order in which the forward pass first needs them.
  const gathers: CollectiveSpan[] = [];
  const needed = [...new Set(forwardTensors.map(({ bucket }) => bucket))];
  const gather = (atTheEarliest: number): void => {
    const bucket = needed[gathers.length];
    if (bucket === undefined) return;
    const { bytes } = buckets[bucket]!;
    const startSeconds = Math.max(gathers.at(-1)?.endSeconds ?? 0, atTheEarliest);
    gathers.push({
      kind: "all-gather",
      bucket,
      bytes,
      startSeconds,
      endSeconds: startSeconds + collectiveSeconds(allGather, bytes),
    });
  };
  if (allGathers === "queued") for (const _ of needed) gather(barrier);
  else gather(barrier);

  let [forward, withoutNetwork] = [barrier, 0];
  let reached = 0;
  for (const { bucket, forwardSeconds } of forwardTensors) {
    if (bucket === needed[reached]) {
      forward = Math.max(forward, gathers[reached]!.endSeconds);
      reached++;
      if (allGathers === "one-ahead") gather(forward);
    }
    forward += forwardSeconds;
    withoutNetwork += forwardSeconds;
  }
  return {
    collectives: [...scatters, ...gathers],
    backwardEndSeconds,
    communicationEndSeconds: gathers.at(-1)?.endSeconds ?? 0,
    exposedSeconds: forward - backwardEndSeconds - withoutNetwork,
    iterationSeconds: forward,
  };
};
