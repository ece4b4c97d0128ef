import { allInOne, checkProfile, type GradientProfile, onePerTensor, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import type { CollectiveModel } from "../collective-model.ts";
import { simultaneously, type Slowdown } from "../simultaneous-timeline.ts";
import { type MergeOptions, messagesOfRun, oneMergeClass } from "./merge-class.ts";
import { planMgWfbpOptimal } from "./mg-wfbp-exact.ts";

/**
 * Bucket boundaries of a plan (cuts), one flag per tensor in ready order: whether a bucket ends after the tensor.
 * Always true for the last tensor.
 */
type Cuts = readonly boolean[];

/** Returns, for each bucket, the index of its first tensor and the index after its last tensor. */
const rangesOf = (cuts: Cuts): readonly (readonly [begin: number, end: number])[] => {
  const ends = [...cuts.keys()].filter((i) => cuts[i]).map((i) => i + 1);
  return ends.map((end, bucket) => [ends[bucket - 1] ?? 0, end] as const);
};

/**
 * Returns the cuts of a plan: positions after which no bucket contains both earlier and later tensors. If a plan
 * separates merge classes, it may have fewer cuts than buckets.
 */
const cutsOf = (plan: BucketPlan, { tensors }: GradientProfile): Cuts => {
  const bucketOf = new Map(plan.flatMap((bucket, number) => bucket.map((path) => [path, number] as const)));
  const remaining = plan.map(({ length }) => length);
  const open = new Set<number>();
  return tensors.map(({ path }) => {
    const bucket = bucketOf.get(path)!;
    open.add(bucket);
    if (--remaining[bucket]! === 0) open.delete(bucket);
    return open.size === 0;
  });
};

/** Returns the variants of `cuts` in which the cut after tensor `i` is toggled, or moved by one tensor. */
const changesAt = (cuts: Cuts, i: number): readonly Cuts[] => {
  const [here, next] = [cuts[i]!, cuts[i + 1]!];
  const toggled = cuts.with(i, !here);
  return i + 2 < cuts.length && here !== next ? [toggled, cuts.with(i, next).with(i + 1, here)] : [toggled];
};

/**
 * Plans buckets for collectives that may run concurrently (ASC-WFBP). Merging saves start-ups, but a second concurrent
 * message uses bandwidth that one message leaves idle, so fewer merges pay off. Three local searches start from
 * `planMgWfbpOptimal`, from one bucket per tensor, and from a single bucket. Each sweep over the tensors adds a cut,
 * removes a cut, or moves a cut by one tensor if `simultaneousTimeline` then ends earlier. A search ends with a sweep
 * that changes nothing. The best result is returned.
 *
 * The result is never slower than the three start plans. It may not be optimal: on random profiles of up to eight
 * tensors, more than nine of ten results were optimal. Between two cuts, each merge class has a separate message (see
 * `MergeOptions`).
 *
 * Cost: O(tensors²) per sweep, and a few sweeps.
 *
 * @param slowdown Slowdown measured by `fitSlowdown`, or `twoAtOnce`, the published slowdown.
 * @throws ArgumentError if the model, the profile or the slowdown has impossible values.
 * @example
 * ```ts
 * const tensors = ["head", "body", "stem"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const model = { startupSeconds: 2, secondsPerByte: 1e-3 };
 * console.log(planSimultaneous({ tensors }, model, twoAtOnce)); // [['head', 'body'], ['stem']]
 * ```
 * Source: the model of Shi, Chu and Li, INFOCOM 2021; their own rule was not available, and the search is ours.
 */
export const planSimultaneous = (
  profile: GradientProfile,
  model: CollectiveModel,
  slowdown: Slowdown,
  { mergeClassOf = oneMergeClass }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const times = readySeconds(profile);
  const ready = new Map(tensors.map(({ path }, i) => [path, times[i]!]));
  const messagesOf = (cuts: Cuts): ReturnType<typeof messagesOfRun> =>
    rangesOf(cuts).flatMap(([begin, end]) => messagesOfRun(tensors.slice(begin, end), mergeClassOf));
  const endOf = (cuts: Cuts): number => {
    const buckets = messagesOf(cuts).map((message) => ({
      bytes: message.reduce((sum, { bytes }) => sum + bytes, 0),
      readySeconds: ready.get(message.at(-1)!.path)!,
    }));
    return Math.max(0, ...simultaneously(buckets, model, slowdown).map(({ endSeconds }) => endSeconds));
  };
  const descend = (from: Cuts): { readonly cuts: Cuts; readonly end: number } => {
    let best = { cuts: from, end: endOf(from) };
    for (let before = Infinity; best.end < before; ) {
      before = best.end;
      for (let i = 0; i < tensors.length - 1; i++)
        for (const cuts of changesAt(best.cuts, i)) {
          const end = endOf(cuts);
          if (end < best.end) best = { cuts, end };
        }
    }
    return best;
  };
  const ends = [planMgWfbpOptimal(profile, model, { mergeClassOf }), onePerTensor(profile), allInOne(profile)].map(
    (plan) => descend(cutsOf(plan, profile)),
  );
  const { cuts } = ends.reduce((best, other) => (other.end < best.end ? other : best));
  return messagesOf(cuts).map((message) => message.map(({ path }) => path));
};
