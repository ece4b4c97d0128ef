import { ArgumentError } from "@skein/tensor-core";
import { type GradientProfile, type PlannedBucket, plannedBuckets } from "./gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, lineAt } from "./collective-model.ts";
import { barrierTimeline, type CollectiveSpan, type Timeline } from "./timeline.ts";

/**
 * How collectives slow one another down: entry k − 1 is the factor c of b while k of them transfer at once. Its length
 * is how many may be under way. One alone is `[1]`; two that leave the link partly idle by themselves, as published,
 * `[1, 1.5]`.
 */
export type Slowdown = readonly number[];

/**
 * As published: two all-reduces at once take a + 1.5 · b · M each, on Ethernet of 10 Gbit/s. Source: Shi, Chu and Li,
 * INFOCOM 2021 (ASC-WFBP).
 */
export const twoAtOnce: Slowdown = [1, 1.5];

interface Running {
  readonly bucket: number;
  readonly startSeconds: number;
  readonly transferFrom: number;
  /** Seconds of transfer that are left, were it alone. */
  left: number;
}

const checkSlowdown = (slowdown: Slowdown): void => {
  if (slowdown[0] !== 1 || slowdown.some((factor, i) => !(factor >= (slowdown[i - 1] ?? 1)) || factor === Infinity))
    throw new ArgumentError(
      `slowdowns [${slowdown.join(", ")}] were given; the first must be 1, and none below the one before it`,
    );
};

/**
 * Collectives up to `slowdown.length` at once, by bucket; the sweep over events on which `simultaneousTimeline` rests.
 */
export const simultaneously = (
  buckets: readonly PlannedBucket[],
  model: CollectiveModel,
  slowdown: Slowdown,
): readonly CollectiveSpan[] => {
  checkSlowdown(slowdown);
  const spans: CollectiveSpan[] = [];
  const running: Running[] = [];
  let [now, next] = [0, 0];
  while (next < buckets.length || running.length > 0) {
    while (running.length < slowdown.length && next < buckets.length && buckets[next]!.readySeconds <= now) {
      const { startupSeconds, secondsPerByte } = lineAt(model, buckets[next]!.bytes);
      running.push({
        bucket: next,
        startSeconds: now,
        transferFrom: now + startupSeconds,
        left: secondsPerByte * buckets[next]!.bytes,
      });
      next++;
    }
    const transferring = running.filter(({ transferFrom }) => transferFrom <= now);
    const factor = slowdown[Math.max(transferring.length, 1) - 1]!;
    // Until the next event: one ends, one begins its transfer, or one becomes ready and finds room.
    const ends = transferring.map(({ left }) => now + left * factor);
    const begins = running.filter(({ transferFrom }) => transferFrom > now).map(({ transferFrom }) => transferFrom);
    const arrives = running.length < slowdown.length && next < buckets.length ? buckets[next]!.readySeconds : Infinity;
    const until = Math.min(arrives, ...ends, ...begins);
    for (const [i, one] of transferring.entries()) {
      // Compared, not computed: a remainder that rounding leaves would never end.
      if (ends[i]! > until) {
        one.left -= (until - now) / factor;
        continue;
      }
      running.splice(running.indexOf(one), 1);
      const { bucket, startSeconds } = one;
      spans.push({ kind: "all-reduce", bucket, bytes: buckets[bucket]!.bytes, startSeconds, endSeconds: until });
    }
    now = until;
  }
  return spans.sort((a, b) => a.bucket - b.bucket);
};

/**
 * Simulate simultaneous collectives: up to `slowdown.length` buckets are under way at once, in the order of the plan.
 * Each takes its start-up a, which delays nobody, then transfers; while k transfer, each takes c(k) times as long, so k
 * that begin together take a + c(k) · b · M.
 *
 * With `slowdown` [1] it is `timelineOf`, up to rounding. No later end than that for any c(k) ≤ k.
 *
 * Cost: O(buckets · slowdown.length).
 *
 * @param slowdown as `fitSlowdown` measured it, or `twoAtOnce`.
 * @throws ArgumentError for a plan that does not fit the profile, or slowdowns that do not grow from 1.
 *
 * Source: Shi, Chu and Li, Exploiting simultaneous communications to accelerate data parallel distributed deep
 * learning, INFOCOM 2021.
 */
export const simultaneousTimeline = (
  profile: GradientProfile,
  plan: BucketPlan,
  model: CollectiveModel,
  slowdown: Slowdown,
): Timeline => barrierTimeline(profile, simultaneously(plannedBuckets(profile, plan), model, slowdown));
