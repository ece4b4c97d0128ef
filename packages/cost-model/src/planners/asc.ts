import { allInOne, checkProfile, type GradientProfile, onePerTensor, readySeconds } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import type { CollectiveModel } from "../collective-model.ts";
import { simultaneously, type Slowdown } from "../simultaneous-timeline.ts";
import { type MergeOptions, messagesOfRun, together } from "./apart.ts";
import { mergeOptimally } from "./mg-wfbp-exact.ts";

/** Whether a bucket ends after each tensor in ready order; after the last one always does. */
type Cuts = readonly boolean[];

/** First and last + 1 of each bucket's tensors. */
const rangesOf = (cuts: Cuts): readonly (readonly [begin: number, end: number])[] => {
  const ends = [...cuts.keys()].filter((i) => cuts[i]).map((i) => i + 1);
  return ends.map((end, bucket) => [ends[bucket - 1] ?? 0, end] as const);
};

/**
 * Where no bucket spans the place between two tensors. Of a plan that keeps kinds apart these may be fewer than its
 * buckets.
 */
const cutsOf = (plan: BucketPlan, { tensors }: GradientProfile): Cuts => {
  const bucketOf = new Map(plan.flatMap((bucket, number) => bucket.map((path) => [path, number] as const)));
  const left = plan.map(({ length }) => length);
  const open = new Set<number>();
  return tensors.map(({ path }) => {
    const bucket = bucketOf.get(path)!;
    open.add(bucket);
    if (--left[bucket]! === 0) open.delete(bucket);
    return open.size === 0;
  });
};

/** What a cut at `i` more or less, or moved on by a tensor, makes of `cuts`. */
const changesAt = (cuts: Cuts, i: number): readonly Cuts[] => {
  const [here, next] = [cuts[i]!, cuts[i + 1]!];
  const toggled = cuts.with(i, !here);
  return i + 2 < cuts.length && here !== next ? [toggled, cuts.with(i, next).with(i + 1, here)] : [toggled];
};

/**
 * Choose buckets for collectives that may be under way at once (ASC-WFBP): merging saves start-ups, and a second
 * message fills what one alone leaves of the link, so that fewer merges pay. From `mergeOptimally`, from one per tensor
 * and from all in one it descends, in sweeps over the tensors: a cut is added, taken away or moved on by one tensor
 * where `simultaneousTimeline` then ends earlier, until a sweep finds nothing; the best end is returned.
 *
 * Never slower than those three. Not exact: on random profiles of up to eight tensors it found the optimum in more than
 * nine of ten. Kinds that are kept `apart` have a message each between two cuts.
 *
 * Cost: O(tensors²) per sweep, and a few sweeps.
 *
 * @param slowdown as `fitSlowdown` measured it, or `twoAtOnce`, the published one.
 * @throws ArgumentError for a model, profile or slowdown with impossible figures.
 *
 * Source: the model of Shi, Chu and Li, INFOCOM 2021; their own rule was not reachable, the search is ours.
 */
export const planSimultaneous = (
  profile: GradientProfile,
  model: CollectiveModel,
  slowdown: Slowdown,
  { apart = together }: MergeOptions = {},
): BucketPlan => {
  checkProfile(profile);
  const { tensors } = profile;
  const times = readySeconds(profile);
  const ready = new Map(tensors.map(({ path }, i) => [path, times[i]!]));
  const messagesOf = (cuts: Cuts): ReturnType<typeof messagesOfRun> =>
    rangesOf(cuts).flatMap(([begin, end]) => messagesOfRun(tensors.slice(begin, end), apart));
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
  const ends = [mergeOptimally(profile, model, { apart }), onePerTensor(profile), allInOne(profile)].map((plan) =>
    descend(cutsOf(plan, profile)),
  );
  const { cuts } = ends.reduce((best, other) => (other.end < best.end ? other : best));
  return messagesOf(cuts).map((message) => message.map(({ path }) => path));
};
