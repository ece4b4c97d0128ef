import { ArgumentError } from "@skein/tensor-core";
import { backwardSeconds, checkProfile, type GradientProfile, readySeconds } from "../gradient-profile.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import type { CollectiveSpan, Timeline } from "../timeline.ts";

/** Part of a tensor's gradient that is sent as a separate message. */
export interface Partition {
  readonly path: string;
  readonly bytes: number;
  /** Send order among ready partitions: smallest number first; equal numbers in the order of the plan. */
  readonly priority: number;
}

/** Partitions of gradients with priorities. Plain data; all ranks must use the same plan. */
export type PartitionPlan = readonly Partition[];

/**
 * Checks that the partitions of each tensor add up to the tensor's bytes. @throws ArgumentError if the sum for a tensor
 * differs, or if the profile does not contain a tensor of the plan.
 */
const checkPartitions = ({ tensors }: GradientProfile, plan: PartitionPlan): void => {
  const remaining = new Map(tensors.map(({ path, bytes }) => [path, bytes]));
  for (const { path, bytes } of plan) {
    const before = remaining.get(path);
    if (before === undefined)
      throw new ArgumentError(
        `the plan contains "${path}", which is missing in the profile; make the plan from this profile`,
      );
    remaining.set(path, before - bytes);
  }
  const named = new Set(plan.map(({ path }) => path));
  for (const { path, bytes } of tensors)
    if (remaining.get(path) !== 0 || !named.has(path))
      throw new ArgumentError(
        `the partitions of "${path}" have ${bytes - remaining.get(path)!} bytes, but the tensor has ${bytes}; include each byte exactly once`,
      );
};

/**
 * Simulates partitions with priorities. The network sends one partition at a time, without preemption. The next
 * partition is the ready partition with the smallest priority number. There is no barrier: the forward pass begins when
 * the backward pass ends, and each tensor's forward computation waits only for the partitions of this tensor.
 *
 * In the spans, `bucket` is the partition's index in the plan.
 *
 * Cost: O(tensors · partitions).
 *
 * @throws ArgumentError if the plan does not contain each byte of the profile exactly once, or if the model or the
 * profile has impossible values.
 *
 * @example
 * ```ts
 * const seconds = { backwardSeconds: 1, forwardSeconds: 1 };
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000, ...seconds }));
 * const model = { startupSeconds: 0.1, secondsPerByte: 1e-3 };
 * const plan = planByteScheduler({ tensors }, model);
 * console.log(priorityTimeline({ tensors }, plan, model).iterationSeconds > 4); // true
 * ```
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
    // The next partition is at the end of the array, so that removing it is cheap.
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
