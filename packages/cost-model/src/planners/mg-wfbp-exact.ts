import { checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import { type MergeOptions, messagesOfRun, oneMergeClass } from "./merge-class.ts";

/** Total bytes and ready time of gradients that are sent together. */
interface Message {
  bytes: number;
  readonly readySeconds: number;
}

/**
 * Merges gradients so that the last all-reduce ends as early as possible if each bucket contains consecutive tensors.
 * With tensors 1 … L in ready order and their cumulative bytes S:
 *
 *     E(0) = 0,   E(j) = min over i < j of max(E(i), ready(j)) + T(S(j) − S(i))
 *
 * E(j) is the time when tensors 1 … j are all-reduced, and T(M) is the time of an all-reduce of M bytes. The result is
 * optimal for every T, not only for a + b · M, because an earlier end of a prefix never delays the remaining
 * collectives. Among plans with equal E(j), the plan with the larger last bucket is chosen.
 *
 * With merge classes (`mergeClassOf`), a group of consecutive tensors is sent as one message per class, in the order in
 * which the last gradient of each message is ready.
 *
 * Cost: O(tensors² · classes).
 *
 * @returns buckets of tensors that are consecutive in ready order, except for tensors of other classes in between.
 * @throws ArgumentError if the model or the profile has impossible values.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body", "stem"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const model = { startupSeconds: 2, secondsPerByte: 1e-3 };
 * console.log(planMgWfbpOptimal({ tensors }, model)); // [['head', 'body', 'stem']]
 * ```
 * Source: the problem of Shi, Chu and Li 2019, arXiv 1811.11141 (MG-WFBP), solved by dynamic programming instead of
 * their greedy rule.
 */
export const planMgWfbpOptimal = (
  profile: GradientProfile,
  model: CollectiveModel,
  { mergeClassOf = oneMergeClass }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const ready = readySeconds(profile);
  const ends: number[] = [0];
  const begins: number[] = [0];
  for (let j = 1; j <= tensors.length; j++) {
    ends[j] = Infinity;
    /** Messages by merge class, in descending order of their ready times. */
    const messages = new Map<string, Message>();
    // Extends the range from its last tensor towards earlier tensors, so that bytes can be accumulated.
    for (let i = j - 1; i >= 0; i--) {
      const { path, bytes } = tensors[i]!;
      const mergeClass = mergeClassOf(path);
      const message = messages.get(mergeClass);
      if (message === undefined) messages.set(mergeClass, { bytes, readySeconds: ready[i]! });
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
    .flatMap((run) => messagesOfRun(run, mergeClassOf))
    .map((message) => message.map(({ path }) => path));
};
