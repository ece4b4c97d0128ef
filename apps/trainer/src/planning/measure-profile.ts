import { median } from "@skein/cost-model";
import { bucketsOf } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { type BucketPlan, leafPaths, type Span } from "@skein/tensor-core";
import { type ExpertLayerTimes, expertLayersOf, medianLayers } from "./expert-layers.ts";
import { replicasAxisOf } from "../job/mesh.ts";
import type { Parts } from "../step/train-state.ts";
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

/** Whether no other rank holds the parameter at a path, so that its gradient is not sent. */
export const isAloneOn = (parts: Pick<Parts, "sharding" | "mesh">): ((path: string) => boolean) => {
  const axisOf = replicasAxisOf(parts);
  return (path) => (parts.mesh[axisOf(path)] ?? 1) === 1;
};

/**
 * When the collective of a bucket was started in one step, in seconds after the begin of the backward pass.
 *
 * @param loss when that began.
 */
const startOfBucket = (spans: readonly Span[], bucket: number, loss: number): number =>
  Math.max(0, startOf(spans, `bucket ${bucket}`, (name) => name.endsWith(` exchange-${bucket}`)) - loss);

/** A gradient, and when it was sent; undefined where it is not. */
export interface SentGradient {
  readonly path: string;
  /** Of the dense gradient. */
  readonly bytes: number;
  readonly readySeconds: number | undefined;
}

/**
 * A profile in the order in which gradients become ready. What is not sent is taken for ready with the one before.
 *
 * @param gradients in the order of the backward pass.
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
 * What steps that exchange each gradient by itself say of their backward pass: medians.
 *
 * @param spans of each step. @param buckets a tensor each. @param isAlone as `isAloneOn`.
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
 * Time a few steps of a job, and tell when each gradient is ready, and when tokens travel. All ranks call it together;
 * their figures differ.
 */
export const measureProfile = async (input: ProfileInput): Promise<MeasuredBackward> => {
  const { buckets: ofJob } = input.job;
  const numSteps = "profileSteps" in ofJob ? ofJob.profileSteps : 10;
  const { spans, buckets, params } = await profileSteps(input, { numSteps });
  return backwardOf(spans, { buckets, params, isAlone: isAloneOn(input.parts) });
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
