import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { collectiveSeconds, type LinearCollectiveModel } from "../collective-model.ts";
import { type MergeOptions, oneMergeClass } from "./merge-class.ts";

/**
 * Merges gradients greedily in ready order (MG-WFBP). Merging two messages saves one start-up: T(M₁) + T(M₂) − T(M₁ +
 * M₂) = a. So the next tensor is added to the bucket unless waiting for this tensor costs at least one start-up:
 *
 *     start = max(end of the previous bucket, ready(l)),   merge l + 1 if ready(l + 1) − start < a
 *
 * The released code also requires that the bucket is still in transit when the tensor is ready: ready(l + 1) < start +
 * T. Because T ≥ a, this condition follows from the rule above.
 *
 * For comparison only: `planMgWfbpOptimal` is never slower than this rule, and sometimes faster (t_b 1, 1, 2, sizes 1,
 * a = 2, b = 1: 9 instead of 8).
 *
 * With merge classes (`mergeClassOf`), each class has a separate open bucket.
 *
 * Cost: O(tensors).
 *
 * @throws ArgumentError if the model or the profile has impossible values.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body", "stem"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const model = { startupSeconds: 2, secondsPerByte: 1e-3 };
 * console.log(planMgWfbp({ tensors }, model)); // [['head', 'body', 'stem']]
 * ```
 * Source: Shi, Chu and Li 2019, arXiv 1811.11141; Shi et al. 2019, arXiv 1912.09268.
 */
export const planMgWfbp = (
  profile: GradientProfile,
  model: LinearCollectiveModel,
  { mergeClassOf = oneMergeClass }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const nextReady: number[] = [];
  const later = new Map<string, number>();
  for (const [i, { path }] of [...tensors.entries()].reverse()) {
    const mergeClass = mergeClassOf(path);
    nextReady[i] = later.get(mergeClass) ?? Infinity;
    later.set(mergeClass, ready[i]!);
  }
  const buckets: string[][] = [];
  const open = new Map<string, { readonly paths: string[]; bytes: number }>();
  let networkFree = 0;
  for (const [i, { path, bytes }] of tensors.entries()) {
    const mergeClass = mergeClassOf(path);
    const bucket = open.get(mergeClass) ?? { paths: [], bytes: 0 };
    bucket.paths.push(path);
    bucket.bytes += bytes;
    const start = Math.max(networkFree, ready[i]!);
    if (nextReady[i]! - start < model.startupSeconds) {
      open.set(mergeClass, bucket);
      continue;
    }
    buckets.push(bucket.paths);
    open.delete(mergeClass);
    networkFree = start + collectiveSeconds(model, bucket.bytes);
  }
  return buckets;
};
