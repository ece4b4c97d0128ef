import {
  type MergeClass,
  bucketOfScope,
  type GradientProfile,
  isStart,
  type LinearCollectiveModel,
  mergeGreedy,
  mergeOptimally,
  planSimultaneous,
  type Slowdown,
  type StepProgram,
} from "@skein/cost-model";
import type { GroupSelectionOptions } from "@skein/collectives";
import type { GradientTensor } from "skein-train/profiling";
import type { Settings } from "./candidates.ts";

/** A message of a step that exchanges each tensor by itself. */
export interface Message {
  /** Number of the message's bucket. */
  readonly bucket: number;
  /** Bytes of the message. */
  readonly bytes: number;
  /** Seconds of computing in the step before the message can start. */
  readonly readySeconds: number;
}

/** Groups of buckets that travel together, and the job settings that produce them. */
export interface Grouping {
  readonly buckets: Settings;
  readonly priorities: "none" | "spread";
  readonly groups: readonly (readonly number[])[];
}

/** The gradient messages of a program, in the order in which they become ready. */
export const messagesOf = (program: StepProgram): Message[] => {
  let computed = 0;
  return program.flatMap((step) => {
    if (step.kind === "kernel") computed += step.price.seconds;
    if (!isStart(step)) return [];
    const bucket = bucketOfScope(step.scope);
    return bucket === undefined ? [] : [{ bucket, bytes: step.bytes, readySeconds: computed }];
  });
};

/**
 * Restrict groups to the gradients that are sent: gradients averaged over other ranks get a group of their own, as in
 * jobs, and buckets whose gradient exists on one rank only are left out.
 *
 * @param gradients by the number of their bucket. @param messages of a step that exchanges each gradient by itself.
 */
export const sentGroups = (
  gradients: readonly Pick<GradientTensor, "axis">[],
  messages: readonly Pick<Message, "bucket">[],
): ((groups: Grouping["groups"]) => Grouping["groups"]) => {
  const sent = new Set(messages.map(({ bucket }) => bucket));
  return (groups) =>
    groups.flatMap((group) => [
      ...Map.groupBy(
        group.filter((bucket) => sent.has(bucket)),
        (bucket) => gradients[bucket]!.axis,
      ).values(),
    ]);
};

/**
 * Scale a profile's bytes to all-reduces in one group that cost a rank as much as those in the tensor's own group,
 * because an all-reduce over P ranks sends 2(P − 1)/P of the bytes.
 *
 * @param groupOf returns the group of a bucket.
 */
export const scaleToGroup = (
  group: Pick<GroupSelectionOptions, "worldSize">,
  { tensors }: GradientProfile,
  groupOf: (bucket: string) => Pick<GroupSelectionOptions, "worldSize">,
): GradientProfile => {
  const share = ({ worldSize }: Pick<GroupSelectionOptions, "worldSize">): number => (worldSize - 1) / worldSize;
  return {
    tensors: tensors.map((tensor) => ({
      ...tensor,
      bytes: tensor.bytes * (share(groupOf(tensor.path)) / share(group)),
    })),
  };
};

/** Fill groups in the order of buckets, each up to `bytes` of dense gradients, as `buckets: fixed-size` does. */
const fixedSizeGroups = (gradientBytes: readonly number[], bytes: number): number[][] => {
  const groups: number[][] = [];
  let room = -1;
  for (const [bucket, own] of gradientBytes.entries()) {
    if (own > room) {
      groups.push([]);
      room = bytes;
    }
    groups.at(-1)!.push(bucket);
    room -= own;
  }
  return groups;
};

/** Bucket sizes from 64 KiB up to `total` (exclusive), with `perDoubling` sizes per doubling. */
export const sizesBelow = (total: number, perDoubling: number): number[] => {
  const sizes: number[] = [];
  for (let i = 0; 2 ** (16 + i / perDoubling) < total; i++) sizes.push(Math.round(2 ** (16 + i / perDoubling)));
  return sizes;
};

/** Bucket size that puts all gradients into one bucket: larger than any gradient. */
export const oneBucketBytes: number = 2 ** 30;

/** Key of groups: equal groups are one configuration, even if made in two ways. */
const keyOf = (groups: Grouping["groups"]): string => groups.map((group) => group.join()).join(" ");

/**
 * Groupings that do not depend on when gradients are ready: each tensor by itself, all in one, and sizes between.
 * Groupings with equal groups appear once.
 *
 * @param gradientBytes of each bucket's dense gradient, by which job files size buckets.
 */
export const sizedGroupings = (gradientBytes: readonly number[]): Grouping[] => {
  const buckets = [...gradientBytes.keys()];
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const sized = [...sizesBelow(total, 2), oneBucketBytes].map((bytes): Grouping => {
    return {
      buckets: { kind: "fixed-size", bytes },
      priorities: "none",
      groups: fixedSizeGroups(gradientBytes, bytes),
    };
  });
  const all: Grouping[] = [
    { buckets: { kind: "per-tensor" }, priorities: "none", groups: buckets.map((bucket) => [bucket]) },
    ...sized,
  ];
  return [...new Map(all.toReversed().map((grouping) => [keyOf(grouping.groups), grouping])).values()].reverse();
};

/**
 * Groupings of the merging planners, as a run of the job would plan them from its measurements.
 *
 * @param profile with bucket numbers as paths, and the bytes of an all-reduce that costs a rank as much.
 * @param slowdown of two collectives at once. @param apart returns, for a path, the class of tensors with which it may
 * be merged.
 */
export const plannedGroupings = (
  profile: GradientProfile,
  allReduce: LinearCollectiveModel,
  { slowdown, apart }: { readonly slowdown: Slowdown; readonly apart?: MergeClass | undefined },
): Grouping[] => {
  const numbered = (plan: readonly (readonly string[])[]): number[][] => plan.map((paths) => paths.map(Number));
  return [
    {
      buckets: { kind: "mg-wfbp", plan: "greedy" },
      priorities: "none",
      groups: numbered(mergeGreedy(profile, allReduce, { apart })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "exact" },
      priorities: "none",
      groups: numbered(mergeOptimally(profile, allReduce, { apart })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "simultaneous" },
      priorities: "spread",
      groups: numbered(planSimultaneous(profile, allReduce, slowdown, { apart })),
    },
  ];
};
