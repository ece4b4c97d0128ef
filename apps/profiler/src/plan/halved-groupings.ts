import { dearTimeline, type GradientProfile, halvesOf, type LinearCollectiveModel, planDear } from "@skein/cost-model";
import { type Grouping, oneBucketBytes, sizesBelow } from "../predict/groupings.ts";

/** Inputs for planning an exchange in halves. */
export interface HalvedInput {
  /** Profile of the sent gradients, by bucket number, with the forward time of each tensor. */
  readonly profile: GradientProfile;
  readonly allReduce: LinearCollectiveModel;
  /** Restricts groups to the messages that are sent, see `sentGroups`. */
  readonly toSentGroups: (groups: Grouping["groups"]) => Grouping["groups"];
}

/** Maximum number of plans to simulate, of those priced by the closed form. */
const most = 8;

/**
 * Buckets for a step in halves: sizes four per doubling are priced by the closed form (`dearTimeline`), and the plans
 * with the shortest steps are returned. Equal plans are priced once.
 *
 * @param gradientBytes by the number of the bucket.
 */
export const halvedGroupings = (
  gradientBytes: readonly number[],
  { profile, allReduce, toSentGroups }: HalvedInput,
): { readonly priced: number; readonly groupings: Grouping[] } => {
  // Jobs fill buckets in the order of the parameter tree, regardless of when gradients are ready.
  const inTree = {
    tensors: gradientBytes.map((bytes, bucket) => ({ path: String(bucket), bytes, backwardSeconds: 0 })),
  };
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const sizes = [...sizesBelow(total, 4), oneBucketBytes];
  const plans = new Map(sizes.map((bytes) => [JSON.stringify(planDear(inTree, bytes)), bytes]));
  const priced = [...plans.values()].map((bytes) => {
    const groups = toSentGroups(planDear(inTree, bytes).map((paths) => paths.map(Number)));
    const plan = groups.map((group) => group.map(String));
    return { bytes, groups, seconds: dearTimeline(profile, plan, halvesOf(allReduce)).iterationSeconds };
  });
  const groupings = priced
    .toSorted((a, b) => a.seconds - b.seconds)
    .slice(0, most)
    .map(
      ({ bytes, groups }): Grouping => ({
        buckets: { kind: "fixed-size", bytes },
        priorities: "none",
        groups,
      }),
    );
  return { priced: priced.length, groupings };
};
