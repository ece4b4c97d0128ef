import { ArgumentError, type BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { checkProfile, type GradientProfile, type ProfiledTensor } from "../../gradient-profile.ts";
import { type MergeOptions, messagesOfRun, together } from "../apart.ts";
import { checkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { pipelineCandidates } from "./pipeline-degree.ts";

/** A stretch of the backward pass. */
export type BackwardStretch = {
  /** Gradients of the profile, in its order, that are there when it begins. */
  readonly numReady: number;
} & (
  | {
      /** A layer of experts, whose tokens go over the same links, in so many chunks. */
      readonly experts: MoeLayerPass;
      readonly numChunks: number;
    }
  /** Computation, during which nothing else is sent. */
  | { readonly denseSeconds: number }
);

/** Buckets that travel where the network is idle, and what the backward pass takes with them. */
export interface IdleBuckets {
  readonly buckets: BucketPlan;
  /** Of the backward pass, up to the end of the last all-reduce. */
  readonly seconds: number;
  /** Of the backward pass alone. */
  readonly backwardSeconds: number;
}

/** Seconds of a stretch with all-reduces of so long in it. */
const secondsWith = (stretch: BackwardStretch): ((gradientSeconds: number) => number) => {
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
 * Merge gradients into buckets whose all-reduces fit into what a backward pass with layers of experts leaves idle: of a
 * layer the time between its exchanges of tokens, and the computation between layers. Each stretch may have some of the
 * gradients that are there when it begins, and what is left follows at the end:
 *
 *     E(n) after a stretch = min over m ≤ n ≤ numReady of E(m) before it + t_stretch(T of gradients m … n)
 *
 * It is `planGradientPartition` for gradients that are not cut: no grouping of neighbours ends earlier. Of equal ones
 * that which sends earlier.
 *
 * Cost: O(stretches · tensors²).
 *
 * @param profile gradients in the order in which they become ready; what computes them is in the stretches.
 * @param stretches of the whole backward pass, in its order.
 * @param allReduce what an all-reduce of so many bytes takes; one of no bytes is not made.
 * @throws ArgumentError for stretches that do not fit the profile, or impossible figures.
 * Source: the problem of FSMoE, ASPLOS 2025, whose gradients may be cut anywhere.
 */
export const planIdleBuckets = (
  profile: GradientProfile,
  stretches: readonly BackwardStretch[],
  allReduce: CollectiveModel,
  { apart = together }: MergeOptions = {},
): IdleBuckets => {
  checkProfile(profile);
  const { tensors } = profile;
  const numTensors = tensors.length;
  /** By first tensor, what one all-reduce of each kind takes up to `end`. */
  const secondsUpTo = (end: number): readonly number[] => {
    const bytesOf = new Map<string, number>();
    const seconds = [0];
    for (const { path, bytes } of tensors.slice(0, end).toReversed()) {
      const kind = apart(path);
      bytesOf.set(kind, (bytesOf.get(kind) ?? 0) + bytes);
      let sum = 0;
      for (const own of bytesOf.values()) if (own > 0) sum += collectiveSeconds(allReduce, own);
      seconds.push(sum);
    }
    return seconds.reverse();
  };
  const travelling = Array.from({ length: numTensors + 1 }, (_, end) => secondsUpTo(end));

  let ends: readonly number[] = [0, ...tensors.map(() => Infinity)];
  let backwardSeconds = 0;
  const sentBefore: (readonly number[])[] = [];
  for (const [index, stretch] of stretches.entries()) {
    const { numReady } = stretch;
    if (!(Number.isInteger(numReady) && numReady >= (stretches[index - 1]?.numReady ?? 0) && numReady <= numTensors))
      throw new ArgumentError(
        `stretch ${index} of a backward pass begins with ${numReady} of ${numTensors} gradients ready; give a whole number that does not fall from stretch to stretch`,
      );
    const secondsOf = secondsWith(stretch);
    backwardSeconds += secondsOf(0);
    const best = ends.map((_, end) => {
      // From what has sent most before, so that of equal plans the one that sends earlier stays.
      let [least, before] = [Infinity, end];
      const first = end <= numReady ? 0 : end + 1;
      for (let begin = end; begin >= first; begin--) {
        const seconds = ends[begin]! + secondsOf(travelling[end]![begin]!);
        if (seconds < least) [least, before] = [seconds, begin];
      }
      return { least, before };
    });
    ends = best.map(({ least }) => least);
    sentBefore.push(best.map(({ before }) => before));
  }
  let [seconds, sent] = [Infinity, 0];
  for (let begin = numTensors; begin >= 0; begin--) {
    const end = ends[begin]! + travelling[numTensors]![begin]!;
    if (end < seconds) [seconds, sent] = [end, begin];
  }
  const runs: (readonly ProfiledTensor[])[] = [tensors.slice(sent)];
  for (const before of sentBefore.toReversed()) {
    runs.push(tensors.slice(before[sent]!, sent));
    sent = before[sent]!;
  }
  const buckets = runs
    .toReversed()
    .flatMap((run) => messagesOfRun(run, apart))
    .map((bucket) => bucket.map(({ path }) => path));
  return { buckets, seconds, backwardSeconds };
};
