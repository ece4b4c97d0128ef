import type { BucketPlan } from "@skein/tensor-core";
import type { CollectiveModel } from "../collective-model.ts";
import type { GradientProfile } from "../gradient-profile.ts";
import { timelineOf } from "../timeline.ts";
import { planMgWfbpOptimal } from "./mg-wfbp-exact.ts";

/** One Kronecker factor of one layer in a training step, as input for planners. */
export interface ProfiledFactor {
  /**
   * Name of the layer, and whether the factor is for the layer's inputs or output gradients, such as
   * `blocks.0.query:input`.
   */
  readonly name: string;
  /** Number of floats to send: n(n + 1)/2 for a symmetric factor of n rows. */
  readonly elements: number;
  /**
   * Seconds from the previous factor until this factor is computed; for the first factor, from the start of the forward
   * pass. Includes the computation of the pass and of the factor.
   */
  readonly workSeconds: number;
}

const bytesPerElement = 4;

/**
 * Converts factors to a gradient profile for planners and timelines. Times count from the start of the forward pass,
 * not from the start of the backward pass as for gradients.
 *
 * @param factors Factors in the order of computation: A of each layer in the forward pass, G in the backward pass, last
 * layer first.
 * @example
 * ```ts
 * console.log(factorProfile([{ name: "a", elements: 100, workSeconds: 1 }]).tensors.length); // 1
 * ```
 */
export const factorProfile = (factors: readonly ProfiledFactor[]): GradientProfile => ({
  tensors: factors.map(({ name, elements, workSeconds }) => ({
    path: name,
    bytes: bytesPerElement * elements,
    backwardSeconds: workSeconds,
  })),
});

export interface FactorBuckets {
  /** Names of the factors in each bucket, in the order of computation. */
  readonly buckets: BucketPlan;
  /** Seconds between the last factor's computation and the end of the exchange. */
  readonly exposedSeconds: number;
}

/**
 * Merges factors so that their exchange ends as early as possible if each bucket contains consecutive factors. Factors
 * of the forward pass and of the backward pass form one sequence, which is planned like gradients by
 * `planMgWfbpOptimal`.
 *
 * Cost: O(factors²).
 *
 * @param factors Factors in the order of computation, as for `factorProfile`.
 * @param model Time model of the collective that averages or sums the factors.
 * @throws ArgumentError if a name occurs twice, or if the model or a factor has impossible values.
 *
 * @example
 * ```ts
 * const factors = ["a", "b"].map((name) => ({ name, elements: 100, workSeconds: 1 }));
 * console.log(planFactorBuckets(factors, { startupSeconds: 2, secondsPerByte: 1e-3 }).buckets); // [['a', 'b']]
 * ```
 * Source: Shi, Zhang and Li 2021, arXiv 2107.06533 (SPD-KFAC), who merge by the greedy rule of MG-WFBP instead of
 * exactly.
 */
export const planFactorBuckets = (factors: readonly ProfiledFactor[], model: CollectiveModel): FactorBuckets => {
  const profile = factorProfile(factors);
  const buckets = planMgWfbpOptimal(profile, model);
  return { buckets, exposedSeconds: timelineOf(profile, buckets, model).exposedSeconds };
};
