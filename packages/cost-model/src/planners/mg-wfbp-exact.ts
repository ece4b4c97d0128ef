import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import { type MergeOptions, messagesOfRun, together } from "./apart.ts";

/** What of a run of gradients is sent together. */
interface Message {
  bytes: number;
  readonly readySeconds: number;
}

/**
 * Merge gradients so that the last all-reduce ends as early as any grouping of neighbours allows. With tensors 1 … L in
 * ready order and S their running bytes:
 *
 *     E(0) = 0,   E(j) = min over i < j of max(E(i), ready(j)) + T(S(j) − S(i)),   E(L) is the end of the last
 *
 * Exact, since what follows a prefix ends no later when the prefix ends earlier; for every T, not only a + b · M. Of
 * equal ends at a tensor the larger last bucket is taken.
 *
 * Where some are kept `apart`, a group of neighbours is a message for each kind in it, one after the other as the last
 * of each is ready.
 *
 * Cost: O(tensors² · kinds).
 *
 * @returns buckets of tensors that follow one another in ready order, but for those of other kinds between.
 * @throws ArgumentError for a model or profile with impossible figures.
 *
 * Source: the problem of Shi, Chu and Li 2019, arXiv 1811.11141 (MG-WFBP), solved by dynamic programming instead of
 * their greedy rule.
 */
export const mergeOptimally = (
  profile: GradientProfile,
  model: CollectiveModel,
  { apart = together }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const ends: number[] = [0];
  const begins: number[] = [0];
  for (let j = 1; j <= tensors.length; j++) {
    ends[j] = Infinity;
    /** By kind, the one that is ready last in front. */
    const messages = new Map<string, Message>();
    // From the shortest run to the longest, whose bytes add up.
    for (let i = j - 1; i >= 0; i--) {
      const { path, bytes } = tensors[i]!;
      const kind = apart(path);
      const message = messages.get(kind);
      if (message === undefined) messages.set(kind, { bytes, readySeconds: ready[i]! });
      else message.bytes += bytes;
      let end = ends[i]!;
      for (const { bytes: sent, readySeconds: at } of [...messages.values()].reverse())
        end = Math.max(end, at) + collectiveSeconds(model, sent);
      if (end <= ends[j]!) [ends[j], begins[j]] = [end, i];
    }
  }
  const runs: (typeof tensors)[] = [];
  for (let j = tensors.length; j > 0; j = begins[j]!) runs.push(tensors.slice(begins[j]!, j));
  return runs
    .toReversed()
    .flatMap((run) => messagesOfRun(run, apart))
    .map((message) => message.map(({ path }) => path));
};
