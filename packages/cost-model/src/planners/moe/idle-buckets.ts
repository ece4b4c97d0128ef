import { ArgumentError, type BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { checkProfile, type GradientProfile, type ProfiledTensor } from "../../gradient-profile.ts";
import { type MergeOptions, messagesOfRun, oneMergeClass } from "../merge-class.ts";
import { checkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { pipelineCandidates } from "./pipeline-degree.ts";

/** A segment of the backward pass: an expert layer, or other computation. */
export type BackwardSegment = {
  /** Number of leading gradients of the profile that are ready when the segment begins. */
  readonly numReady: number;
} & (
  | {
      /** Backward pass of an expert layer, whose tokens are sent over the same links as the gradients. */
      readonly experts: MoeLayerPass;
      /** Number of chunks of the layer's pipeline. */
      readonly numChunks: number;
    }
  /** Computation during which no tokens are sent. */
  | { readonly denseSeconds: number }
);

/** Buckets whose all-reduces fill the network's idle times, with the resulting time of the backward pass. */
export interface IdleBuckets {
  readonly buckets: BucketPlan;
  /** Seconds of the backward pass, up to the end of the last all-reduce. */
  readonly seconds: number;
  /** Seconds of the backward pass without all-reduces. */
  readonly backwardSeconds: number;
}

/** Returns a function that computes the seconds of a segment from the seconds of the all-reduces during the segment. */
const secondsWith = (stretch: BackwardSegment): ((gradientSeconds: number) => number) => {
  if ("denseSeconds" in stretch) {
    checkSeconds("its dense part", stretch.denseSeconds);
    return (gradientSeconds) => Math.max(stretch.denseSeconds, gradientSeconds);
  }
  const [only] = pipelineCandidates(stretch.experts, {
    degrees: [stretch.numChunks],
    intraNodeOrders: ["gathers-first"],
  });
  const { seconds, fixedSeconds } = only!;
  return (gradientSeconds) => Math.max(seconds, fixedSeconds + gradientSeconds);
};

/**
 * Merges gradients into buckets whose all-reduces use the network's idle times in a backward pass with expert layers:
 * the times between a layer's token exchanges, and the computation between layers. Each segment may send gradients that
 * are ready when the segment begins. The remaining gradients follow at the end:
 *
 *     E(n) after a segment = min over m ≤ n ≤ numReady of (E(m) before the segment + t_segment(T of gradients m … n))
 *
 * E(n) is the earliest end with n gradients sent, and T the time of their all-reduces. Unlike `planGradientPartition`,
 * gradients are not divided. No other grouping of consecutive gradients ends earlier. Among plans that end at the same
 * time, the plan that sends gradients earlier is chosen.
 *
 * Cost: O(segments · tensors²).
 *
 * @param profile Gradients in the order in which they become ready. Their computation times are contained in the
 * segments.
 * @param stretches Segments of the full backward pass, in order.
 * @param allReduce Time model of an all-reduce as a function of its bytes. Empty all-reduces take no time.
 * @throws ArgumentError if the segments do not fit the profile, or a value is impossible.
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 1_000, backwardSeconds: 1 }));
 * const segments = [{ numReady: 1, denseSeconds: 1 }, { numReady: 1, denseSeconds: 1 }];
 * const model = { startupSeconds: 0.1, secondsPerByte: 1e-4 };
 * console.log(planIdleBuckets({ tensors }, segments, model).buckets); // [['head'], ['body']]
 * ```
 * Source: the problem of FSMoE, ASPLOS 2025, whose gradients may be divided anywhere.
 */
export const planIdleBuckets = (
  profile: GradientProfile,
  stretches: readonly BackwardSegment[],
  allReduce: CollectiveModel,
  { mergeClassOf = oneMergeClass }: MergeOptions = {},
): IdleBuckets => {
  checkProfile(profile);
  const { tensors } = profile;
  const numTensors = tensors.length;
  /**
   * Returns, for each index, the seconds to all-reduce the gradients from this index up to `end` (exclusive), with one
   * all-reduce per merge class.
   */
  const secondsUpTo = (end: number): readonly number[] => {
    const bytesOf = new Map<string, number>();
    const seconds = [0];
    for (const { path, bytes } of tensors.slice(0, end).toReversed()) {
      const mergeClass = mergeClassOf(path);
      bytesOf.set(mergeClass, (bytesOf.get(mergeClass) ?? 0) + bytes);
      let sum = 0;
      for (const own of bytesOf.values()) if (own > 0) sum += collectiveSeconds(allReduce, own);
      seconds.push(sum);
    }
    return seconds.reverse();
  };
  const exchangeSeconds = Array.from({ length: numTensors + 1 }, (_, end) => secondsUpTo(end));

  let ends: readonly number[] = [0, ...tensors.map(() => Infinity)];
  let backwardSeconds = 0;
  const sentBefore: (readonly number[])[] = [];
  for (const [index, stretch] of stretches.entries()) {
    const { numReady } = stretch;
    if (!(Number.isInteger(numReady) && numReady >= (stretches[index - 1]?.numReady ?? 0) && numReady <= numTensors))
      throw new ArgumentError(
        `segment ${index} of a backward pass has ${numReady} of ${numTensors} gradients ready, but the number must be whole and must not decrease; correct numReady`,
      );
    const secondsOf = secondsWith(stretch);
    backwardSeconds += secondsOf(0);
    const best = ends.map((_, end) => {
      // Starts with the plan that sends the most gradients in earlier segments, so that this plan is chosen among equal
      // plans.
      let [least, before] = [Infinity, end];
      const first = end <= numReady ? 0 : end + 1;
      for (let begin = end; begin >= first; begin--) {
        const seconds = ends[begin]! + secondsOf(exchangeSeconds[end]![begin]!);
        if (seconds < least) [least, before] = [seconds, begin];
      }
      return { least, before };
    });
    ends = best.map(({ least }) => least);
    sentBefore.push(best.map(({ before }) => before));
  }
  let [seconds, sent] = [Infinity, 0];
  for (let begin = numTensors; begin >= 0; begin--) {
    const end = ends[begin]! + exchangeSeconds[numTensors]![begin]!;
    if (end < seconds) [seconds, sent] = [end, begin];
  }
  const runs: (readonly ProfiledTensor[])[] = [tensors.slice(sent)];
  for (const before of sentBefore.toReversed()) {
    runs.push(tensors.slice(before[sent]!, sent));
    sent = before[sent]!;
  }
  const buckets = runs
    .toReversed()
    .flatMap((run) => messagesOfRun(run, mergeClassOf))
    .map((bucket) => bucket.map(({ path }) => path));
  return { buckets, seconds, backwardSeconds };
};
