import { bucketsOf } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { replicasAxisOf } from "@skein/job/node";
import { median } from "@skein/measuring";
import type { Parts } from "@skein/step/node";
import { type BucketPlan, leafPaths, type Span } from "@skein/tensor-core";
import { expertLayersOf, type ExpertLayerTimes, medianLayers } from "./expert-layers.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/** Measured times of a backward pass. */
export interface MeasuredBackward {
  /**
   * Tensors in the order in which their gradients become ready, with dense sizes in bytes. On WebGPU a gradient is
   * ready after it has been read back.
   */
  readonly profile: GradientProfile;
  /** Expert layers in the order of the backward pass. */
  readonly layers: readonly ExpertLayerTimes[];
}

/**
 * Returns the time at which a step starts to reduce the loss over all ranks, which marks the end of the forward pass.
 */
const beginOf = (spans: readonly Span[]): number => startOf(spans, "the loss", (name) => name.endsWith(" mean-loss"));

/**
 * Returns a predicate on parameter paths: whether only one rank holds the parameter, so that its gradient is not sent.
 */
export const isAloneOn = (parts: Pick<Parts, "sharding" | "mesh">): ((path: string) => boolean) => {
  const axisOf = replicasAxisOf(parts);
  return (path) => (parts.mesh[axisOf(path)] ?? 1) === 1;
};

/**
 * Returns the time at which the collective of a bucket starts, in seconds after the start of the backward pass.
 *
 * @param loss Start time of the backward pass in the time base of `spans`.
 */
const startOfBucket = (spans: readonly Span[], bucket: number, loss: number): number =>
  Math.max(0, startOf(spans, `bucket ${bucket}`, (name) => name.endsWith(` exchange-${bucket}`)) - loss);

/** Size of a gradient, and the time at which it was sent. */
export interface SentGradient {
  readonly path: string;
  /** Dense size of the gradient in bytes. */
  readonly bytes: number;
  readonly readySeconds: number | undefined;
}

/**
 * Returns a profile in the order in which gradients become ready. A gradient that is not sent counts as ready at the
 * same time as the previous gradient.
 *
 * @param gradients Gradients in the order of the backward pass.
 */
export const profileOfStarts = (gradients: readonly SentGradient[]): GradientProfile => {
  let last = 0;
  const inOrder = gradients
    .map((gradient) => ({ ...gradient, ready: (last = gradient.readySeconds ?? last) }))
    .sort((a, b) => a.ready - b.ready);
  return {
    tensors: inOrder.map(({ path, bytes, ready }, i) => ({
      path,
      bytes,
      backwardSeconds: ready - (inOrder[i - 1]?.ready ?? 0),
    })),
  };
};

/**
 * Computes the median times of a backward pass from steps that exchange each gradient separately.
 *
 * @param spans Spans of each step. @param buckets Gradient buckets, one per tensor. @param isAlone Whether only one
 * rank holds a parameter, see `isAloneOn`.
 */
export const backwardOf = (
  spans: readonly (readonly Span[])[],
  {
    buckets,
    params,
    isAlone,
  }: { readonly buckets: BucketPlan; readonly params: unknown; readonly isAlone: (path: string) => boolean },
): MeasuredBackward => {
  const losses = spans.map(beginOf);
  const profile = profileOfStarts(
    bucketsOf(params, buckets).map(({ tensors: [tensor], shape }, i) => ({
      path: tensor!.path,
      bytes: 4 * shape[0]!,
      readySeconds: isAlone(tensor!.path)
        ? undefined
        : median(spans.map((one, step) => startOfBucket(one, i, losses[step]!))),
    })),
  );
  return { profile, layers: medianLayers(spans.map((one, step) => expertLayersOf(one, losses[step]!))) };
};

/**
 * Measures a few steps of a job: when each gradient becomes ready, and when tokens are exchanged. Must be called on all
 * ranks. Measured times differ between ranks.
 */
export const measureProfile = async (input: ProfileInput): Promise<MeasuredBackward> => {
  const { buckets: jobBuckets } = input.job;
  const numSteps = "profileSteps" in jobBuckets ? jobBuckets.profileSteps : 10;
  const { spans, buckets, params } = await profileSteps(input, { numSteps });
  return backwardOf(spans, { buckets, params, isAlone: isAloneOn(input.parts) });
};

/** Converts a profile to a list of numbers, so that ranks can agree on the profile. */
export const profileNumbers = (profile: GradientProfile, params: unknown): number[] => {
  const paths = leafPaths(params);
  return profile.tensors.flatMap(({ path, bytes, backwardSeconds }) => [paths.indexOf(path), bytes, backwardSeconds]);
};

export const profileFrom = (numbers: readonly number[], params: unknown): GradientProfile => {
  const paths = leafPaths(params);
  return {
    tensors: Array.from({ length: numbers.length / 3 }, (_, i) => ({
      path: paths[numbers[3 * i]!]!,
      bytes: numbers[3 * i + 1]!,
      backwardSeconds: numbers[3 * i + 2]!,
    })),
  };
};
