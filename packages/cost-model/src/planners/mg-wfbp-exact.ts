import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";

/**
 * Merge gradients so that the last all-reduce ends as early as any grouping of neighbours allows. With tensors 1 … L in
 * ready order and S their running bytes:
 *
 *     E(0) = 0,   E(j) = min over i < j of max(E(i), ready(j)) + T(S(j) − S(i)),   E(L) is the end of the last
 *
 * Exact, since what follows a prefix ends no later when the prefix ends earlier; for every T, not only a + b · M. Of
 * equal ends at a tensor the larger last bucket is taken.
 *
 * Cost: O(tensors²).
 *
 * @returns buckets of tensors that follow one another in ready order.
 * @throws ArgumentError for a model or profile with impossible figures.
 *
 * Source: the problem of Shi, Chu and Li 2019, arXiv 1811.11141 (MG-WFBP), solved by dynamic programming instead of
 * their greedy rule.
 */
export const mergeOptimally = (profile: GradientProfile, model: CollectiveModel): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const ends: number[] = [0];
  const begins: number[] = [0];
  for (let j = 1; j <= tensors.length; j++) {
    ends[j] = Infinity;
    let bytes = 0;
    // From the shortest bucket to the longest, whose bytes add up.
    for (let i = j - 1; i >= 0; i--) {
      bytes += tensors[i]!.bytes;
      const end = Math.max(ends[i]!, ready[j - 1]!) + collectiveSeconds(model, bytes);
      if (end <= ends[j]!) [ends[j], begins[j]] = [end, i];
    }
  }
  const buckets: string[][] = [];
  for (let j = tensors.length; j > 0; j = begins[j]!)
    buckets.push(tensors.slice(begins[j]!, j).map(({ path }) => path));
  return buckets.reverse();
};
