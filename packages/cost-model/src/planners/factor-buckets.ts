import type { BucketPlan } from "@skein/tensor-core";
import type { CollectiveModel } from "../collective-model.ts";
import type { GradientProfile } from "../gradient-profile.ts";
import { timelineOf } from "../timeline.ts";
import { mergeOptimally } from "./mg-wfbp-exact.ts";

/** One Kronecker factor of one layer, as a training step computes it. */
export interface ProfiledFactor {
  /** Of a side of a layer: `blocks.0.query:input`. */
  readonly name: string;
  /** Floats that travel: n(n + 1)/2 of a symmetric factor of n rows. */
  readonly elements: number;
  /** From the factor before, or the begin of the forward pass, until this one is computed: passes and factors. */
  readonly workSeconds: number;
}

const bytesPerElement = 4;

/**
 * Factors for the planners and timelines of gradients: from the begin of the forward pass to the end of the backward
 * pass, instead of from the begin of the backward pass.
 *
 * @param factors in the order in which they are computed: A of each layer forward, G backward, last layer first.
 */
export const factorProfile = (factors: readonly ProfiledFactor[]): GradientProfile => ({
  tensors: factors.map(({ name, elements, workSeconds }) => ({
    path: name,
    bytes: bytesPerElement * elements,
    backwardSeconds: workSeconds,
  })),
});

export interface FactorBuckets {
  /** Of names of factors, as they are computed. */
  readonly buckets: BucketPlan;
  /** What is left of the exchange when all factors are computed. */
  readonly exposedSeconds: number;
}

/**
 * Merge factors so that the exchange of all ends as early as any grouping of neighbours allows: those of the forward
 * pass and of the backward pass are one sequence, planned as gradients are by `mergeOptimally`.
 *
 * Cost: O(factors²).
 *
 * @param factors as of `factorProfile`. @param model of the collective that means or sums take.
 * @throws ArgumentError for a name that comes twice, and a model or factor with impossible figures.
 *
 * Source: Shi, Zhang and Li 2021, arXiv 2107.06533 (SPD-KFAC), who merge by the rule of MG-WFBP, instead of exactly.
 */
export const planFactorBuckets = (factors: readonly ProfiledFactor[], model: CollectiveModel): FactorBuckets => {
  const profile = factorProfile(factors);
  const buckets = mergeOptimally(profile, model);
  return { buckets, exposedSeconds: timelineOf(profile, buckets, model).exposedSeconds };
};
