import {
  type Apart,
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
import type { GroupSituation } from "@skein/collectives";
import type { GradientTensor } from "skein-train/profiling";
import type { Settings } from "./candidates.ts";

/** A message of a step that exchanges each tensor by itself. */
export interface Message {
  /** Number of its bucket. */
  readonly bucket: number;
  /** That travel. */
  readonly bytes: number;
  /** Computation of the step before it can start. */
  readonly readySeconds: number;
}

/** Buckets of a program that travel together, and the settings of a job that make them. */
export interface Grouping {
  readonly buckets: Settings;
  readonly priorities: "none" | "spread";
  readonly groups: readonly (readonly number[])[];
}

/** The messages of gradients of a program, in the order in which they become ready. */
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
 * What of some groups is sent: what is averaged over other ranks in a group of its own, as jobs have it; and nothing of
 * a bucket whose gradient a rank has alone.
 *
 * @param gradients by the number of their bucket. @param messages of a step that exchanges each by itself.
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
 * A profile by the bytes of all-reduces in one group that cost a rank as much as its own: 2(P − 1)/P of them are sent.
 *
 * @param groupOf each bucket.
 */
export const asAmong = (
  group: Pick<GroupSituation, "worldSize">,
  { tensors }: GradientProfile,
  groupOf: (bucket: string) => Pick<GroupSituation, "worldSize">,
): GradientProfile => {
  const share = ({ worldSize }: Pick<GroupSituation, "worldSize">): number => (worldSize - 1) / worldSize;
  return {
    tensors: tensors.map((tensor) => ({
      ...tensor,
      bytes: tensor.bytes * (share(groupOf(tensor.path)) / share(group)),
    })),
  };
};

/** Fill groups in the order of buckets, each up to `bytes` of dense gradients, as `buckets: fixed-size` does. */
const ofSize = (gradientBytes: readonly number[], bytes: number): number[][] => {
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

/** From 64 KiB on, below all gradients together, so many in a doubling. */
export const sizesBelow = (total: number, inADoubling: number): number[] => {
  const sizes: number[] = [];
  for (let i = 0; 2 ** (16 + i / inADoubling) < total; i++) sizes.push(Math.round(2 ** (16 + i / inADoubling)));
  return sizes;
};

/** More than any gradient. */
export const oneBucketBytes: number = 2 ** 30;

/** The same groups, made in two ways, are one configuration. */
const keyOf = (groups: Grouping["groups"]): string => groups.map((group) => group.join()).join(" ");

/**
 * Groupings that do not depend on when gradients are ready: each tensor by itself, all in one, and sizes between; those
 * that come to the same once.
 *
 * @param gradientBytes of each bucket's dense gradient, by which job files size buckets.
 */
export const sizedGroupings = (gradientBytes: readonly number[]): Grouping[] => {
  const buckets = [...gradientBytes.keys()];
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const sized = [...sizesBelow(total, 2), oneBucketBytes].map((bytes): Grouping => {
    return { buckets: { kind: "fixed-size", bytes }, priorities: "none", groups: ofSize(gradientBytes, bytes) };
  });
  const all: Grouping[] = [
    { buckets: { kind: "per-tensor" }, priorities: "none", groups: buckets.map((bucket) => [bucket]) },
    ...sized,
  ];
  return [...new Map(all.toReversed().map((grouping) => [keyOf(grouping.groups), grouping])).values()].reverse();
};

/**
 * What planners merge, as a run of the job would by what it measures.
 *
 * @param profile paths are numbers of buckets; bytes those of an all-reduce that costs a rank as much.
 * @param slowdown of two collectives at once. @param apart which of them travel apart, by path.
 */
export const plannedGroupings = (
  profile: GradientProfile,
  allReduce: LinearCollectiveModel,
  { slowdown, apart }: { readonly slowdown: Slowdown; readonly apart?: Apart | undefined },
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
