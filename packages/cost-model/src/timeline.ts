import {
  backwardSeconds,
  checkProfile,
  forwardSeconds,
  type GradientProfile,
  type PlannedBucket,
  plannedBuckets,
} from "./gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "./collective-model.ts";

/** Time span of one collective on the network. */
export interface CollectiveSpan {
  readonly kind: "all-reduce" | "reduce-scatter" | "all-gather";
  /** Index of the bucket in the plan. */
  readonly bucket: number;
  readonly bytes: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/**
 * Predicted timeline of one iteration. Time 0 is the start of the backward pass; the iteration ends with the following
 * forward pass.
 */
export interface Timeline {
  /** Collectives in the order in which they start. */
  readonly collectives: readonly CollectiveSpan[];
  readonly backwardEndSeconds: number;
  /** Time when the last collective ends; 0 if there are no collectives. */
  readonly communicationEndSeconds: number;
  /**
   * Seconds that communication adds to the iteration: `iterationSeconds` minus the seconds of the forward and the
   * backward pass.
   */
  readonly exposedSeconds: number;
  readonly iterationSeconds: number;
}

/** Returns the timeline of an iteration whose forward pass waits for all collectives. */
export const barrierTimeline = (profile: GradientProfile, collectives: readonly CollectiveSpan[]): Timeline => {
  const backwardEndSeconds = backwardSeconds(profile);
  const communicationEndSeconds = Math.max(0, ...collectives.map(({ endSeconds }) => endSeconds));
  const exposedSeconds = Math.max(0, communicationEndSeconds - backwardEndSeconds);
  return {
    collectives,
    backwardEndSeconds,
    communicationEndSeconds,
    exposedSeconds,
    iterationSeconds: Math.max(communicationEndSeconds, backwardEndSeconds) + forwardSeconds(profile),
  };
};

/**
 * Computes the spans of collectives that run one at a time in the order of the plan, each as soon as its bucket is
 * ready: start(k) = max(end(k − 1), ready(k)).
 */
export const inTurn = (
  kind: CollectiveSpan["kind"],
  buckets: readonly PlannedBucket[],
  model: CollectiveModel,
): readonly CollectiveSpan[] => {
  let end = 0;
  return buckets.map(({ bytes, readySeconds }, bucket) => {
    const startSeconds = Math.max(end, readySeconds);
    end = startSeconds + collectiveSeconds(model, bytes);
    return { kind, bucket, bytes, startSeconds, endSeconds: end };
  });
};

/**
 * Simulates wait-free backpropagation with a bucket plan: each bucket is all-reduced as soon as its last gradient is
 * ready and the network is free, and the next forward pass waits for all buckets.
 *
 *     start(k) = max(start(k − 1) + T(M(k − 1)), ready(k)),   T_iter = t_f + max(t_b, end of the last all-reduce)
 *
 * @throws ArgumentError if the plan does not fit the profile, or if the model or the profile has impossible values.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const model = { startupSeconds: 1, secondsPerByte: 1e-3 };
 * console.log(timelineOf({ tensors }, [["head"], ["body"]], model).exposedSeconds); // 3
 * ```
 * Source: Shi et al. 2018, arXiv 1805.03812 (S-SGD as a DAG); Zhang et al. 2017, arXiv 1706.03292 (wait-free
 * backpropagation).
 */
export const timelineOf = (profile: GradientProfile, plan: BucketPlan, model: CollectiveModel): Timeline =>
  barrierTimeline(profile, inTurn("all-reduce", plannedBuckets(profile, plan), model));

/**
 * Computes the maximum speedup from overlapping communication with the backward pass: 1 + min(t_b, t_c) / (t_f +
 * max(t_b, t_c)), called S_max.
 *
 * With r = t_c / t_b this is 1 + 1 / (t_f / min(t_c, t_b) + max(r, 1/r)), as published. The bound is reached if the
 * collectives can be divided so that they fit into the backward pass, and is largest at r = 1.
 *
 * @param communicationSeconds t_c, total seconds of all collectives of the plan.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * console.log(overlapBound({ tensors }, 2)); // 2
 * ```
 * Source: the bound by which Shi et al. normalize their plots (MG-WFBP, arXiv 1912.09268).
 */
export const overlapBound = (profile: GradientProfile, communicationSeconds: number): number => {
  checkProfile(profile);
  const backward = backwardSeconds(profile);
  const longest = forwardSeconds(profile) + Math.max(backward, communicationSeconds);
  return longest === 0 ? 1 : 1 + Math.min(backward, communicationSeconds) / longest;
};
