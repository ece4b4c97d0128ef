import { type MergeClass, planMgWfbp, planMgWfbpOptimal, planSimultaneous } from "@skein/cost-model/planners";
import { bucketOfScope, isStart, type StepProgram } from "@skein/cost-model/pricing";
import type { GradientProfile, LinearCollectiveModel, Slowdown } from "@skein/cost-model";
import type { GroupSelectionOptions } from "@skein/collectives";
import type { GradientTensor } from "skein-train/profiling";
import type { Settings } from "./candidates.ts";

/** Gradient message of a step that exchanges each tensor separately. */
export interface Message {
  /** Number of the bucket that the message contains. */
  readonly bucket: number;
  /** Message size in bytes. */
  readonly bytes: number;
  /** Computing time in the step, in seconds, before the message can start. */
  readonly readySeconds: number;
}

/** Groups of buckets that are exchanged together, with the job settings that produce these groups. */
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
 * Returns a function that restricts groups of buckets to the gradients that a job sends. The function splits a group
 * whose gradients are averaged over different ranks, and removes gradients that exist on a single rank.
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
 * Converts tensor sizes in a profile for planners that assume a single all-reduce group. A tensor that is all-reduced
 * in another group gets the size whose all-reduce in `group` sends the same number of bytes per rank. An all-reduce of
 * M bytes over P ranks sends 2 M (P − 1) / P bytes per rank.
 *
 * @param groupOf Returns the group in which a bucket is all-reduced.
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
 * Assigns buckets to groups in order of bucket number. Each group has up to `bytes` of dense gradients, as with
 * `buckets: fixed-size`.
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

/** Bucket size in bytes that exceeds the sum of all gradients, so that a single bucket has all gradients. */
export const oneBucketBytes: number = 2 ** 30;

/** Returns a key that identifies the groups of a configuration, because different settings may produce equal groups. */
const keyOf = (groups: Grouping["groups"]): string => groups.map((group) => group.join()).join(" ");

/**
 * Returns the groupings that do not depend on when gradients become ready: one group per tensor, a single group, and
 * fixed group sizes in between. Groupings with equal groups are returned only once.
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
 * Returns the groupings of the planners that merge gradients. A run of the job would choose the same groupings if its
 * measured times were equal to the predicted times.
 *
 * @param profile Gradient profile with bucket numbers as paths, and with bytes scaled by `scaleToGroup`.
 * @param slowdown Slowdown of two concurrent collectives.
 * @param mergeClassOf Returns the merge class of a path. Only tensors with equal merge classes may be merged.
 */
export const plannedGroupings = (
  profile: GradientProfile,
  allReduce: LinearCollectiveModel,
  { slowdown, mergeClassOf }: { readonly slowdown: Slowdown; readonly mergeClassOf?: MergeClass | undefined },
): Grouping[] => {
  const numbered = (plan: readonly (readonly string[])[]): number[][] => plan.map((paths) => paths.map(Number));
  return [
    {
      buckets: { kind: "mg-wfbp", plan: "greedy" },
      priorities: "none",
      groups: numbered(planMgWfbp(profile, allReduce, { mergeClassOf })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "exact" },
      priorities: "none",
      groups: numbered(planMgWfbpOptimal(profile, allReduce, { mergeClassOf })),
    },
    {
      buckets: { kind: "mg-wfbp", plan: "simultaneous" },
      priorities: "spread",
      groups: numbered(planSimultaneous(profile, allReduce, slowdown, { mergeClassOf })),
    },
  ];
};
