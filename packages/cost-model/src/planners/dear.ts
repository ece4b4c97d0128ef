import { ArgumentError } from "@skein/tensor-core";
import { backwardSeconds, checkProfile, type GradientProfile, plannedBuckets } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds, halfOf } from "../collective-model.ts";
import { type CollectiveSpan, inTurn, type Timeline } from "../timeline.ts";

/** Time models of the two halves of an all-reduce, as functions of the full vector's bytes. */
export interface HalvesModel {
  readonly reduceScatter: CollectiveModel;
  readonly allGather: CollectiveModel;
}

export interface DearTimelineOptions {
  /**
   * Start of all-gathers. "queued": all all-gathers start at the barrier, in the order of the forward pass.
   * "one-ahead": an all-gather starts when the forward pass reaches the previous bucket, as in the released code; never
   * faster than "queued". Default: "queued".
   */
  readonly allGathers?: "queued" | "one-ahead";
}

/**
 * Returns a model in which each half takes half the time of the all-reduce.
 * @example
 * ```ts
 * const { reduceScatter } = halvesOf({ startupSeconds: 2, secondsPerByte: 1e-3 });
 * console.log(reduceScatter); // { startupSeconds: 1, secondsPerByte: 0.0005 }
 * ```
 */
export const halvesOf = (allReduce: CollectiveModel): HalvesModel => ({
  reduceScatter: halfOf(allReduce),
  allGather: halfOf(allReduce),
});

/**
 * Fills buckets in the order of the forward pass up to `bucketBytes`; a larger tensor gets a separate bucket. With this
 * order, the forward pass needs full buckets first, and the bucket with the remaining tensors last.
 *
 * @returns the plan in ready order, starting with the last bucket of the forward pass.
 * @throws ArgumentError if the size is not positive.
 *
 * @example
 * ```ts
 * const seconds = { backwardSeconds: 1, forwardSeconds: 1 };
 * const tensors = ["head", "body", "stem"].map((path) => ({ path, bytes: 1_000, ...seconds }));
 * console.log(planDear({ tensors }, 2_000)); // [['head'], ['body', 'stem']]
 * ```
 * Source: Zhang et al. 2023, arXiv 2302.12445 (DeAR), §IV.
 */
export const planDear = (profile: GradientProfile, bucketBytes: number): BucketPlan => {
  checkProfile(profile);
  if (!(bucketBytes > 0))
    throw new ArgumentError(
      `planDear: the bucket size is ${bucketBytes} bytes, but must be above 0; use a positive size`,
    );
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
 * Simulates DeAR: each bucket is reduce-scattered during the backward pass; after a barrier, buckets are all-gathered
 * in the order of the forward pass, and each tensor's forward computation waits for its bucket.
 *
 *     RS_start(k) = max(RS_end(k − 1), ready(k)),   B = max(t_b, RS_end of the last bucket)
 *     AG_start(first) = B,   AG_start(g + 1) = AG_end(g),   FF(g) starts at max(FF_end(g − 1), AG_end(g))
 *
 * B is the barrier, FF(g) the forward computation that needs bucket g, and t_f and t_b are the seconds of the forward
 * and backward pass. An iteration takes T_iter ≥ max(t_f, all AG) + max(t_b, all RS). If T_RS + T_AG = T_AR and the
 * all-gathers after the first are hidden by the forward pass, DeAR is never slower than wait-free backpropagation with
 * the same buckets. Without these conditions DeAR may be slower: if the forward pass is too short, the all-gather half
 * of an all-reduce is exposed, although the backward pass could hide the full all-reduce.
 *
 * @throws ArgumentError if the plan does not fit the profile, or if the model or the profile has impossible values.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1, forwardSeconds: 1 }));
 * const halves = halvesOf({ startupSeconds: 1, secondsPerByte: 1e-3 });
 * console.log(dearTimeline({ tensors }, [["head"], ["body"]], halves).iterationSeconds); // 6
 * ```
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
  // All-gathers of the buckets, in the order of the forward pass.
  const gathers: CollectiveSpan[] = [];
  const needed = [...new Set(forwardTensors.map(({ bucket }) => bucket))];
  const gather = (earliestSeconds: number): void => {
    const bucket = needed[gathers.length];
    if (bucket === undefined) return;
    const { bytes } = buckets[bucket]!;
    const startSeconds = Math.max(gathers.at(-1)?.endSeconds ?? 0, earliestSeconds);
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
