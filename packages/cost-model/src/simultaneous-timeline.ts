import { ArgumentError } from "@skein/tensor-core";
import { type GradientProfile, type PlannedBucket, plannedBuckets } from "./gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, lineAt } from "./collective-model.ts";
import { barrierTimeline, type CollectiveSpan, type Timeline } from "./timeline.ts";

/**
 * Slowdowns of concurrent collectives: entry k − 1 is the factor c on the time per byte b while k collectives transfer.
 * The length is the maximum number of concurrent collectives. `[1]`: one collective at a time. `[1, 1.5]`, the
 * published value: up to two collectives at a time, which together use more bandwidth than a single collective.
 */
export type Slowdown = readonly number[];

/**
 * Published slowdown: two concurrent all-reduces take a + 1.5 · b · M each on 10 Gbit/s Ethernet. Source: Shi, Chu and
 * Li, INFOCOM 2021 (ASC-WFBP).
 *
 * @example
 * ```ts
 * console.log(twoAtOnce); // [1, 1.5]
 * ```
 */
export const twoAtOnce: Slowdown = [1, 1.5];

interface Running {
  readonly bucket: number;
  readonly startSeconds: number;
  readonly transferFrom: number;
  /** Remaining transfer time without contention, in seconds. */
  remaining: number;
}

const checkSlowdown = (slowdown: Slowdown): void => {
  if (slowdown[0] !== 1 || slowdown.some((factor, i) => !(factor >= (slowdown[i - 1] ?? 1)) || factor === Infinity))
    throw new ArgumentError(
      `slowdowns are [${slowdown.join(", ")}], but the first must be 1, and no slowdown may be below the previous one; correct them`,
    );
};

/**
 * Simulates up to `slowdown.length` concurrent collectives, and returns their spans by bucket. This is the event loop
 * of `simultaneousTimeline`.
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
        remaining: secondsPerByte * buckets[next]!.bytes,
      });
      next++;
    }
    const transferring = running.filter(({ transferFrom }) => transferFrom <= now);
    const factor = slowdown[Math.max(transferring.length, 1) - 1]!;
    // Advance to the next event: a transfer ends, a transfer begins, or a bucket becomes ready and is admitted.
    const ends = transferring.map(({ remaining }) => now + remaining * factor);
    const begins = running.filter(({ transferFrom }) => transferFrom > now).map(({ transferFrom }) => transferFrom);
    const arrives = running.length < slowdown.length && next < buckets.length ? buckets[next]!.readySeconds : Infinity;
    const until = Math.min(arrives, ...ends, ...begins);
    for (const [i, one] of transferring.entries()) {
      // Compares the end with the time instead of testing whether the remainder is 0, because rounding might leave a
      // remainder forever.
      if (ends[i]! > until) {
        one.remaining -= (until - now) / factor;
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
 * Simulates concurrent collectives: up to `slowdown.length` buckets are in transit at once, in the order of the plan.
 * Each collective takes a start-up a, which delays no other collective, and then transfers. While k collectives
 * transfer, each transfer takes c(k) times as long, so k collectives that begin together take a + c(k) · b · M.
 *
 * With `slowdown` [1] this equals `timelineOf`, up to rounding. For any c(k) ≤ k the end is never later than the end of
 * `timelineOf`.
 *
 * Cost: O(buckets · slowdown.length).
 *
 * @param slowdown Slowdown measured by `fitSlowdown`, or `twoAtOnce`.
 * @throws ArgumentError if the plan does not fit the profile, or a slowdown is invalid.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const model = { startupSeconds: 1, secondsPerByte: 1e-3 };
 * console.log(simultaneousTimeline({ tensors }, [["head"], ["body"]], model, twoAtOnce).communicationEndSeconds); // 4
 * ```
 * Source: Shi, Chu and Li, Exploiting simultaneous communications to accelerate data parallel distributed deep
 * learning, INFOCOM 2021.
 */
export const simultaneousTimeline = (
  profile: GradientProfile,
  plan: BucketPlan,
  model: CollectiveModel,
  slowdown: Slowdown,
): Timeline => barrierTimeline(profile, simultaneously(plannedBuckets(profile, plan), model, slowdown));
