import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { collectiveSeconds, type LinearCollectiveModel } from "../collective-model.ts";

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
 * Cost: O(tensors).
 *
 * @throws ArgumentError for a model or profile with impossible figures.
 *
 * Source: Shi, Chu and Li 2019, arXiv 1811.11141; Shi et al. 2019, arXiv 1912.09268.
 */
export const mergeGreedy = (profile: GradientProfile, model: LinearCollectiveModel): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const buckets: string[][] = [];
  let [networkFree, bytes] = [0, 0];
  let open: string[] = [];
  for (const [i, tensor] of tensors.entries()) {
    open.push(tensor.path);
    bytes += tensor.bytes;
    const start = Math.max(networkFree, ready[i]!);
    const next = ready[i + 1] ?? Infinity;
    if (next - start < model.startupSeconds) continue;
    buckets.push(open);
    networkFree = start + collectiveSeconds(model, bytes);
    [open, bytes] = [[], 0];
  }
  return buckets;
};
