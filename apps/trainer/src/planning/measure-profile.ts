import { bucketsOf } from "@skein/compressors";
import type { GradientProfile } from "@skein/cost-model";
import { leafPaths, type Span } from "@skein/tensor-core";
import { median } from "../median.ts";
import { type ProfileInput, profileSteps, startOf } from "./profile-steps.ts";

/**
 * When the collective of each bucket was started in one step, in seconds after the loss of all ranks was asked for: the
 * end of the forward pass.
 */
const startsOf = (spans: readonly Span[], numBuckets: number): readonly number[] => {
  const loss = startOf(spans, "the loss", (name) => !/ (exchange|statistics|inverses|preconditioned)-/.test(name));
  return Array.from({ length: numBuckets }, (_, i) =>
    Math.max(0, startOf(spans, `bucket ${i}`, (name) => name.endsWith(` exchange-${i}`)) - loss),
  );
};

/**
 * Time a few steps of a job, and tell when each gradient is ready. All ranks call it together; their figures differ.
 *
 * @returns tensors in the order in which their gradients become ready; bytes are dense. On WebGPU a gradient is ready
 * when it has been read back.
 */
export const measureProfile = async (input: ProfileInput): Promise<GradientProfile> => {
  const { job } = input;
  const numSteps = job.buckets.kind === "mg-wfbp" ? job.buckets.profileSteps : 10;
  const { spans, buckets, params } = await profileSteps(input, { numSteps });
  const starts = spans.map((one) => startsOf(one, buckets.length));
  const ready = buckets.map((_, i) => median(starts.map((one) => one[i]!)));
  const tensors = bucketsOf(params, buckets)
    .map(({ tensors: [tensor], shape }, i) => ({ path: tensor!.path, bytes: 4 * shape[0]!, ready: ready[i]! }))
    .sort((a, b) => a.ready - b.ready);
  return {
    tensors: tensors.map(({ path, bytes, ready: at }, i) => ({
      path,
      bytes,
      backwardSeconds: at - (tensors[i - 1]?.ready ?? 0),
    })),
  };
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
