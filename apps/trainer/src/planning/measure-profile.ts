import { median } from "@skein/cost-model";
import { bucketsOf } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { type BucketPlan, leafPaths, type Span } from "@skein/tensor-core";
import { type ExpertLayerTimes, expertLayersOf, medianLayers } from "./expert-layers.ts";
import { replicasAxisOf } from "../job/mesh.ts";
import type { Parts } from "../step/train-state.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/** A measured backward pass. */
export interface MeasuredBackward {
  /**
   * Tensors in the order in which their gradients become ready; bytes are dense. On WebGPU a gradient is ready after it
   * has been read back.
   */
  readonly profile: GradientProfile;
  /** Layers of experts in the order of the pass. */
  readonly layers: readonly ExpertLayerTimes[];
}

/** Start of the reduction of the loss over all ranks in a step, which marks the end of the forward pass. */
const beginOf = (spans: readonly Span[]): number => startOf(spans, "the loss", (name) => name.endsWith(" mean-loss"));

/** Whether no other rank holds the parameter at a path, so that its gradient is not sent. */
export const isAloneOn = (parts: Pick<Parts, "sharding" | "mesh">): ((path: string) => boolean) => {
  const axisOf = replicasAxisOf(parts);
  return (path) => (parts.mesh[axisOf(path)] ?? 1) === 1;
};

/**
 * Start of a bucket's collective in a step, in seconds after the start of the backward pass.
 *
 * @param loss start of the backward pass.
 */
const startOfBucket = (spans: readonly Span[], bucket: number, loss: number): number =>
  Math.max(0, startOf(spans, `bucket ${bucket}`, (name) => name.endsWith(` exchange-${bucket}`)) - loss);

/** A gradient, and the time when it was sent. */
export interface SentGradient {
  readonly path: string;
  /** Bytes of the dense gradient. */
  readonly bytes: number;
  readonly readySeconds: number | undefined;
}

/**
 * A profile in the order in which gradients become ready. A gradient that is not sent counts as ready together with the
 * previous gradient.
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
 * Medians of the backward pass, from steps that exchange each gradient separately.
 *
 * @param spans of each step. @param buckets one tensor each. @param isAlone result of `isAloneOn`.
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
 * Time a few steps of a job, and find when each gradient is ready, and when tokens are exchanged. All ranks call it
 * together; their times differ.
 */
export const measureProfile = async (input: ProfileInput): Promise<MeasuredBackward> => {
  const { buckets: jobBuckets } = input.job;
  const numSteps = "profileSteps" in jobBuckets ? jobBuckets.profileSteps : 10;
  const { spans, buckets, params } = await profileSteps(input, { numSteps });
  return backwardOf(spans, { buckets, params, isAlone: isAloneOn(input.parts) });
};

/** A profile as numbers, so that ranks can agree on it. */
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
