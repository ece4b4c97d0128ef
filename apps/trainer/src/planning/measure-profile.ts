import { bucketsOf } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { type BucketPlan, leafPaths, type Span } from "@skein/tensor-core";
import { median } from "../median.ts";
import { type ExpertLayerTimes, expertLayersOf, medianLayers } from "./expert-layers.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/** A backward pass as it was measured. */
export interface MeasuredBackward {
  /**
   * Tensors in the order in which their gradients become ready; bytes are dense. On WebGPU a gradient is ready when it
   * has been read back.
   */
  readonly profile: GradientProfile;
  /** In the order of the pass. */
  readonly layers: readonly ExpertLayerTimes[];
}

/** When the loss of all ranks was asked for in one step: the end of the forward pass. */
const beginOf = (spans: readonly Span[]): number => startOf(spans, "the loss", (name) => name.endsWith(" mean-loss"));

/** When the collective of each bucket was started in one step, in seconds after the begin of the backward pass. */
const startsOf = (spans: readonly Span[], numBuckets: number): readonly number[] => {
  const loss = beginOf(spans);
  return Array.from({ length: numBuckets }, (_, i) =>
    Math.max(0, startOf(spans, `bucket ${i}`, (name) => name.endsWith(` exchange-${i}`)) - loss),
  );
};

/**
 * What steps that exchange each gradient by itself say of their backward pass: medians.
 *
 * @param spans of each step. @param buckets a tensor each.
 */
export const backwardOf = (
  spans: readonly (readonly Span[])[],
  buckets: BucketPlan,
  params: unknown,
): MeasuredBackward => {
  const starts = spans.map((one) => startsOf(one, buckets.length));
  const ready = buckets.map((_, i) => median(starts.map((one) => one[i]!)));
  const tensors = bucketsOf(params, buckets)
    .map(({ tensors: [tensor], shape }, i) => ({ path: tensor!.path, bytes: 4 * shape[0]!, ready: ready[i]! }))
    .sort((a, b) => a.ready - b.ready);
  const profile = {
    tensors: tensors.map(({ path, bytes, ready: at }, i) => ({
      path,
      bytes,
      backwardSeconds: at - (tensors[i - 1]?.ready ?? 0),
    })),
  };
  return { profile, layers: medianLayers(spans.map((one) => expertLayersOf(one, beginOf(one)))) };
};

/**
 * Time a few steps of a job, and tell when each gradient is ready, and when tokens travel. All ranks call it together;
 * their figures differ.
 */
export const measureProfile = async (input: ProfileInput): Promise<MeasuredBackward> => {
  const { buckets: ofJob } = input.job;
  const numSteps = "profileSteps" in ofJob ? ofJob.profileSteps : 10;
  const { spans, buckets, params } = await profileSteps(input, { numSteps });
  return backwardOf(spans, buckets, params);
};

/** Paths of a profile as numbers, so that ranks may agree upon it. */
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
