import type { BucketPlan } from "@skein/tensor-core";
import type { CollectiveModel } from "../collective-model.ts";
import type { GradientProfile } from "../gradient-profile.ts";
import { timelineOf } from "../timeline.ts";
import { mergeOptimally } from "./mg-wfbp-exact.ts";

/** One Kronecker factor of one layer in a training step. */
export interface ProfiledFactor {
  /** Name of the layer's side, such as `blocks.0.query:input`. */
  readonly name: string;
  /** Number of floats to send: n(n + 1)/2 for a symmetric factor of n rows. */
  readonly elements: number;
  /**
   * Seconds from the previous factor, or from the begin of the forward pass, until this factor is computed: passes and
   * factors together.
   */
  readonly workSeconds: number;
}

const bytesPerElement = 4;

/**
 * Convert factors to a gradient profile for planners and timelines. Time starts at the begin of the forward pass,
 * instead of the begin of the backward pass.
 *
 * @param factors in the order of computation: A of each layer in the forward pass, G in the backward pass, last layer
 * first.
 */
export const factorProfile = (factors: readonly ProfiledFactor[]): GradientProfile => ({
  tensors: factors.map(({ name, elements, workSeconds }) => ({
    path: name,
    bytes: bytesPerElement * elements,
    backwardSeconds: workSeconds,
  })),
});

export interface FactorBuckets {
  /** Buckets of factor names, in the order of computation. */
  readonly buckets: BucketPlan;
  /** Seconds of the exchange that remain after all factors are computed. */
  readonly exposedSeconds: number;
}

/**
 * Merge factors so that their exchange ends as early as possible with buckets of neighbors. Factors of the forward pass
 * and of the backward pass form one sequence, which is planned like gradients by `mergeOptimally`.
 *
 * Cost: O(factors²).
 *
 * @param factors see `factorProfile`. @param model of the collective that averages or sums.
 * @throws ArgumentError for a duplicate name, or a model or factor with impossible values.
 *
 * Source: Shi, Zhang and Li 2021, arXiv 2107.06533 (SPD-KFAC), who merge by the greedy rule of MG-WFBP instead of
 * exactly.
 */
export const planFactorBuckets = (factors: readonly ProfiledFactor[], model: CollectiveModel): FactorBuckets => {
  const profile = factorProfile(factors);
  const buckets = mergeOptimally(profile, model);
  return { buckets, exposedSeconds: timelineOf(profile, buckets, model).exposedSeconds };
};
