import { type MergeClass, planMgWfbp, planMgWfbpOptimal, planSimultaneous } from "@skein/cost-model/planners";
import { bucketOfScope, isStart, type StepProgram } from "@skein/cost-model/pricing";
import type { GradientProfile, LinearCollectiveModel, Slowdown } from "@skein/cost-model";
import type { GroupSelectionOptions } from "@skein/collectives";
import type { GradientTensor } from "skein-train/profiling";
import type { Settings } from "./candidates.ts";

/** Message of a step that exchanges each tensor separately. */
export interface Message {
  /** Number of the bucket that the message contains. */
  readonly bucket: number;
  /** Number of bytes of the message. */
  readonly bytes: number;
  /** Seconds of computation in the step before the message can start. */
  readonly readySeconds: number;
}

/** Groups of buckets that are exchanged together, and the job settings that produce these groups. */
export interface Grouping {
  readonly buckets: Settings;
  readonly priorities: "none" | "spread";
  readonly groups: readonly (readonly number[])[];
}

/** Returns the gradient messages of a program, in the order in which they become ready. */
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
 * Restrict groups to the gradients that are sent: gradients that are averaged over different ranks are in separate
 * groups, as in jobs, and buckets whose gradient exists on one rank only are left out.
 *
 * @param gradients Gradients by bucket number.
 * @param messages Messages of a step that exchanges each gradient separately.
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
 * Scale the bytes of a profile whose tensors are all-reduced in different groups, so that an all-reduce of the scaled
 * bytes in `group` costs a rank as much as the tensor's all-reduce in its own group. An all-reduce over P ranks sends
 * 2(P − 1)/P times its bytes.
 *
 * @param groupOf Returns the group of a bucket.
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

/**
 * Fill groups with buckets in the order of their numbers, each group with up to `bytes` of dense gradients, as
 * `buckets: fixed-size` does.
 */
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

/** Returns bucket sizes in bytes from 64 KiB up to `total` (exclusive), with `perDoubling` sizes per doubling. */
export const sizesBelow = (total: number, perDoubling: number): number[] => {
  const sizes: number[] = [];
  for (let i = 0; 2 ** (16 + i / perDoubling) < total; i++) sizes.push(Math.round(2 ** (16 + i / perDoubling)));
  return sizes;
};

/** Bucket size in bytes that puts all gradients into one bucket: larger than the sum of all gradients. */
export const oneBucketBytes: number = 2 ** 30;

/**
 * Returns a key of groups. Groupings with equal keys are one configuration, even if different settings produced them.
 */
const keyOf = (groups: Grouping["groups"]): string => groups.map((group) => group.join()).join(" ");

/**
 * Build the groupings that do not depend on the times when gradients are ready: one group per tensor, a single group,
 * and group sizes in between. Groupings with equal groups are returned only once.
 *
 * @param gradientBytes Bytes of each bucket's dense gradient, which determine bucket sizes in job files.
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
 * Build the groupings of the merging planners, as a run of the job would plan them from its measurements.
 *
 * @param profile Gradient profile with bucket numbers as paths, and with bytes scaled by `scaleToGroup`.
 * @param slowdown Slowdown of two concurrent collectives.
 * @param apart Returns the merge class of a path. Only tensors of one class may be merged.
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
      groups: numbered(planMgWfbp(profile, allReduce, { apart })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "exact" },
      priorities: "none",
      groups: numbered(planMgWfbpOptimal(profile, allReduce, { apart })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "simultaneous" },
      priorities: "spread",
      groups: numbered(planSimultaneous(profile, allReduce, slowdown, { apart })),
    },
  ];
};
