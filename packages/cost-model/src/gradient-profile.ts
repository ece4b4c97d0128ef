import { ArgumentError, type BucketPlan } from "@skein/tensor-core";

/** One parameter tensor of a model, with its computation times in a training step. */
export interface ProfiledTensor {
  readonly path: string;
  /** Size in bytes of the tensor's dense gradient. */
  readonly bytes: number;
  /** Seconds of backward computation from when the previous gradient is ready until this gradient is ready. */
  readonly backwardSeconds: number;
  /**
   * Seconds of forward computation from the first use of this tensor to the first use of the next tensor. Default: 0.
   */
  readonly forwardSeconds?: number;
}

/** Gradients of one training step, as input for planners. Plain data; measured, or produced by the simulator. */
export interface GradientProfile {
  /** Tensors in the order in which their gradients become ready, starting with the last layer of the forward pass. */
  readonly tensors: readonly ProfiledTensor[];
}

/**
 * Checks the values of a profile.
 * @throws ArgumentError if a path occurs twice, or a value is negative or not finite.
 */
export const checkProfile = ({ tensors }: GradientProfile): void => {
  const seen = new Set<string>();
  for (const { path, bytes, backwardSeconds, forwardSeconds = 0 } of tensors) {
    if (seen.has(path))
      throw new ArgumentError(
        `the profile contains "${path}" twice, but each tensor must have one row; remove one row`,
      );
    seen.add(path);
    for (const [name, value] of Object.entries({ bytes, backwardSeconds, forwardSeconds }))
      if (!(value >= 0 && Number.isFinite(value)))
        throw new ArgumentError(
          `the profile has ${name} ${value} for "${path}", but values must be finite and not negative; measure the profile again`,
        );
  }
};

/**
 * Returns the seconds from the start of the backward pass until each gradient is ready: cumulative sums of backward
 * times.
 */
export const readySeconds = ({ tensors }: GradientProfile): readonly number[] => {
  let ready = 0;
  return tensors.map(({ backwardSeconds }) => (ready += backwardSeconds));
};

/**
 * Returns the seconds of the backward pass.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, backwardSeconds: 0.5 }));
 * console.log(backwardSeconds({ tensors })); // 1
 * ```
 */
export const backwardSeconds = (profile: GradientProfile): number => readySeconds(profile).at(-1) ?? 0;

/**
 * Returns the seconds of the forward pass.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, backwardSeconds: 1, forwardSeconds: 0.5 }));
 * console.log(forwardSeconds({ tensors })); // 1
 * ```
 */
export const forwardSeconds = ({ tensors }: GradientProfile): number => {
  let total = 0;
  // The terms are added in the order of the forward pass, so the sum is bitwise equal to the sums that timelines
  // compute.
  for (const tensor of tensors.toReversed()) total += tensor.forwardSeconds ?? 0;
  return total;
};

/**
 * Returns the plan with one bucket per tensor (wait-free backpropagation).
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, backwardSeconds: 0.001 }));
 * console.log(onePerTensor({ tensors })); // [['head'], ['body']]
 * ```
 */
export const onePerTensor = ({ tensors }: GradientProfile): BucketPlan => tensors.map(({ path }) => [path]);

/**
 * Returns the plan with a single bucket for all gradients; an empty profile has no bucket.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, backwardSeconds: 0.001 }));
 * console.log(allInOne({ tensors })); // [['head', 'body']]
 * ```
 */
export const allInOne = ({ tensors }: GradientProfile): BucketPlan =>
  tensors.length === 0 ? [] : [tensors.map(({ path }) => path)];

/** Size of a bucket of a plan, and time when the bucket is ready. */
export interface PlannedBucket {
  readonly bytes: number;
  /** Seconds from the start of the backward pass until all gradients of the bucket are ready. */
  readonly readySeconds: number;
}

/**
 * Returns the bytes and the ready time of each bucket of a plan.
 *
 * @throws ArgumentError unless the plan contains every tensor of the profile exactly once and no bucket is empty.
 */
export const plannedBuckets = (profile: GradientProfile, plan: BucketPlan): readonly PlannedBucket[] => {
  checkProfile(profile);
  const ready = readySeconds(profile);
  const indices = new Map(profile.tensors.map(({ path }, i) => [path, i]));
  const buckets = plan.map((paths, bucket) => {
    if (paths.length === 0)
      throw new ArgumentError(`bucket ${bucket} of ${plan.length} is empty; leave it out of the plan`);
    let [bytes, at] = [0, 0];
    for (const path of paths) {
      const index = indices.get(path);
      if (index === undefined)
        throw new ArgumentError(
          `the plan contains "${path}", which is missing in the profile or already in another bucket; make the plan from this profile`,
        );
      indices.delete(path);
      bytes += profile.tensors[index]!.bytes;
      at = Math.max(at, ready[index]!);
    }
    return { bytes, readySeconds: at };
  });
  if (indices.size > 0)
    throw new ArgumentError(
      `the plan lacks [${[...indices.keys()].join(", ")}], but must contain every tensor; make the plan from this profile`,
    );
  return buckets;
};
