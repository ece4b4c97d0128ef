import { ArgumentError } from "@skein/tensor-core";
import { backwardSeconds, checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import type { CollectiveSpan, Timeline } from "../timeline.ts";

/** A piece of one tensor's gradient that travels by itself. */
export interface Partition {
  readonly path: string;
  readonly bytes: number;
  /** Of those that are ready, the one with the smallest number travels first; equals in the order of the plan. */
  readonly priority: number;
}

/** How gradients are cut, and which piece goes first. Plain data; all ranks must use the same plan. */
export type PartitionPlan = readonly Partition[];

/** Bytes of each tensor in the plan must add up to those of the profile. */
const checkPartitions = ({ tensors }: GradientProfile, plan: PartitionPlan): void => {
  const left = new Map(tensors.map(({ path, bytes }) => [path, bytes]));
  for (const { path, bytes } of plan) {
    const before = left.get(path);
    if (before === undefined)
      throw new ArgumentError(`the plan names "${path}", which the profile lacks; make it from this profile`);
    left.set(path, before - bytes);
  }
  const named = new Set(plan.map(({ path }) => path));
  for (const { path, bytes } of tensors)
    if (left.get(path) !== 0 || !named.has(path))
      throw new ArgumentError(
        `the partitions of "${path}" hold ${bytes - left.get(path)!} of its ${bytes} bytes; each byte travels once`,
      );
};

/**
 * Simulate partitions with priorities: the network carries one partition at a time, to its end; then of those that are
 * ready the one with the smallest priority. There is no barrier: the forward pass begins when the backward pass ends,
 * and each tensor's forward waits for its own partitions only.
 *
 * `bucket` of the spans is the partition's index in the plan.
 *
 * Cost: O(tensors · partitions).
 *
 * @throws ArgumentError for a plan that does not hold each byte of the profile once, or a model or profile with
 * impossible figures.
 *
 * Source: Peng et al. 2019, A generic communication scheduler for distributed DNN training acceleration, SOSP
 * (ByteScheduler).
 */
export const priorityTimeline = (profile: GradientProfile, plan: PartitionPlan, model: CollectiveModel): Timeline => {
  checkProfile(profile);
  checkPartitions(profile, plan);
  const ready = readySeconds(profile);
  const partsOf = Map.groupBy(plan.keys(), (i) => plan[i]!.path);
  const waiting: number[] = [];
  const collectives: CollectiveSpan[] = [];
  const doneSeconds = new Map<string, number>();
  let [now, arrived] = [0, 0];
  for (let sent = 0; sent < plan.length; sent++) {
    if (waiting.length === 0) now = Math.max(now, ready[arrived]!);
    const before = arrived;
    while (arrived < ready.length && ready[arrived]! <= now)
      waiting.push(...partsOf.get(profile.tensors[arrived++]!.path)!);
    // The next one last, where it is cheap to take.
    if (arrived > before) waiting.sort((a, b) => plan[b]!.priority - plan[a]!.priority || b - a);
    const index = waiting.pop()!;
    const { path, bytes } = plan[index]!;
    const startSeconds = now;
    now += collectiveSeconds(model, bytes);
    collectives.push({ kind: "all-reduce", bucket: index, bytes, startSeconds, endSeconds: now });
    doneSeconds.set(path, now);
  }
  const backwardEndSeconds = backwardSeconds(profile);
  let [forward, withoutNetwork] = [backwardEndSeconds, 0];
  for (const { path, forwardSeconds = 0 } of profile.tensors.toReversed()) {
    forward = Math.max(forward, doneSeconds.get(path)!) + forwardSeconds;
    withoutNetwork += forwardSeconds;
  }
  return {
    collectives,
    backwardEndSeconds,
    communicationEndSeconds: collectives.at(-1)?.endSeconds ?? 0,
    exposedSeconds: forward - backwardEndSeconds - withoutNetwork,
    iterationSeconds: forward,
  };
};
