import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { collectiveSeconds, type LinearCollectiveModel } from "../collective-model.ts";
import { type MergeOptions, together } from "./apart.ts";

/**
 * Merge gradients greedily in ready order (MG-WFBP). Two messages in one save a start-up: T(M₁) + T(M₂) − T(M₁ + M₂) =
 * a. So a bucket takes in the next tensor unless waiting for it costs that much:
 *
 *     start = max(end of the bucket before, ready(l)),   merge l + 1 when ready(l + 1) − start < a
 *
 * The released code asks also that the bucket would still be travelling, ready(l + 1) < start + T; that follows, since
 * T ≥ a.
 *
 * It is a baseline: `mergeOptimally` is never slower, and this one now and then is (t_b 1, 1, 2, sizes 1, a = 2, b = 1:
 * 9 beside 8).
 *
 * Where some are kept `apart`, each kind has a bucket that is being filled, and the next tensor is the next of its
 * kind.
 *
 * Cost: O(tensors).
 *
 * @throws ArgumentError for a model or profile with impossible figures.
 *
 * Source: Shi, Chu and Li 2019, arXiv 1811.11141; Shi et al. 2019, arXiv 1912.09268.
 */
export const mergeGreedy = (
  profile: GradientProfile,
  model: LinearCollectiveModel,
  { apart = together }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const nextOfKind: number[] = [];
  const later = new Map<string, number>();
  for (const [i, { path }] of [...tensors.entries()].reverse()) {
    const kind = apart(path);
    nextOfKind[i] = later.get(kind) ?? Infinity;
    later.set(kind, ready[i]!);
  }
  const buckets: string[][] = [];
  const open = new Map<string, { readonly paths: string[]; bytes: number }>();
  let networkFree = 0;
  for (const [i, { path, bytes }] of tensors.entries()) {
    const kind = apart(path);
    const bucket = open.get(kind) ?? { paths: [], bytes: 0 };
    bucket.paths.push(path);
    bucket.bytes += bytes;
    const start = Math.max(networkFree, ready[i]!);
    if (nextOfKind[i]! - start < model.startupSeconds) {
      open.set(kind, bucket);
      continue;
    }
    buckets.push(bucket.paths);
    open.delete(kind);
    networkFree = start + collectiveSeconds(model, bucket.bytes);
  }
  return buckets;
};
