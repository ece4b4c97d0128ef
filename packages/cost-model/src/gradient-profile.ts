import { ArgumentError, type BucketPlan } from "@skein/tensor-core";

/** One tensor of a model, as a training step meets it. */
export interface ProfiledTensor {
  readonly path: string;
  /** Of its dense gradient. */
  readonly bytes: number;
  /** Backward computation between the gradient that was ready before and this one. */
  readonly backwardSeconds: number;
  /** Forward computation that must wait for this tensor, up to where the next one is needed. Default: 0. */
  readonly forwardSeconds?: number;
}

/** What planners know of a training step. Plain data; measured, or made by the simulator. */
export interface GradientProfile {
  /** In the order in which their gradients become ready: the last layer of the forward pass first. */
  readonly tensors: readonly ProfiledTensor[];
}

/** @throws ArgumentError for a path that comes twice, or a figure that is negative or not finite. */
export const checkProfile = ({ tensors }: GradientProfile): void => {
  const seen = new Set<string>();
  for (const { path, bytes, backwardSeconds, forwardSeconds = 0 } of tensors) {
    if (seen.has(path)) throw new ArgumentError(`the profile names "${path}" twice; each tensor has one row`);
    seen.add(path);
    for (const [name, value] of Object.entries({ bytes, backwardSeconds, forwardSeconds }))
      if (!(value >= 0 && Number.isFinite(value)))
        throw new ArgumentError(
          `the profile says ${name} ${value} for "${path}"; figures must be finite and not negative; measure it anew`,
        );
  }
};

/**
 * Seconds from the begin of the backward pass until each gradient is ready: the sums of what its backward and those
 * before it take.
 */
export const readySeconds = ({ tensors }: GradientProfile): readonly number[] => {
  let ready = 0;
  return tensors.map(({ backwardSeconds }) => (ready += backwardSeconds));
};

/** Seconds of the whole backward pass. */
export const backwardSeconds = (profile: GradientProfile): number => readySeconds(profile).at(-1) ?? 0;

/** Seconds of the whole forward pass. */
export const forwardSeconds = ({ tensors }: GradientProfile): number => {
  let total = 0;
  // In the order of the forward pass, so that timelines that add up the same terms end with the same bits.
  for (const tensor of tensors.toReversed()) total += tensor.forwardSeconds ?? 0;
  return total;
};

/** Two trivial plans: every gradient by itself (wait-free backpropagation), and all in one. */
export const onePerTensor = ({ tensors }: GradientProfile): BucketPlan => tensors.map(({ path }) => [path]);

/** The plan with one bucket that holds all gradients; no bucket where there are none. */
export const allInOne = ({ tensors }: GradientProfile): BucketPlan =>
  tensors.length === 0 ? [] : [tensors.map(({ path }) => path)];

/** A bucket of a plan, in the terms of a timeline. */
export interface PlannedBucket {
  readonly bytes: number;
  /** When the last of its gradients is ready. */
  readonly readySeconds: number;
}

/**
 * Look up what each bucket of a plan weighs, and when it is ready.
 *
 * @throws ArgumentError unless the plan names every tensor of the profile exactly once and no bucket is empty.
 */
export const plannedBuckets = (profile: GradientProfile, plan: BucketPlan): readonly PlannedBucket[] => {
  checkProfile(profile);
  const ready = readySeconds(profile);
  const places = new Map(profile.tensors.map(({ path }, i) => [path, i]));
  const buckets = plan.map((paths, bucket) => {
    if (paths.length === 0)
      throw new ArgumentError(`bucket ${bucket} of ${plan.length} is empty; leave it out of the plan`);
    let [bytes, at] = [0, 0];
    for (const path of paths) {
      const place = places.get(path);
      if (place === undefined)
        throw new ArgumentError(
          `the plan names "${path}", which the profile lacks or another bucket has; make it from this profile`,
        );
      places.delete(path);
      bytes += profile.tensors[place]!.bytes;
      at = Math.max(at, ready[place]!);
    }
    return { bytes, readySeconds: at };
  });
  if (places.size > 0)
    throw new ArgumentError(`the plan leaves out [${[...places.keys()].join(", ")}]; make it from this profile`);
  return buckets;
};
