import { dearTimeline, halvesOf, planDear } from "@skein/cost-model/planners";
import type { GradientProfile, LinearCollectiveModel } from "@skein/cost-model";
import { type Grouping, oneBucketBytes, sizesBelow } from "../predict/groupings.ts";

/** Input for planning an exchange with DeAR, which splits each all-reduce into reduce-scatter and all-gather. */
export interface HalvedInput {
  /** Profile of the gradients that the job sends. Each path is a bucket number; each tensor has a forward time. */
  readonly profile: GradientProfile;
  readonly allReduce: LinearCollectiveModel;
  /** Removes gradients that the job does not send from the groups, see `sentGroups`. */
  readonly toSentGroups: (groups: Grouping["groups"]) => Grouping["groups"];
}

/** Maximum number of simulated plans. The plans with the lowest closed-form step times are simulated. */
const most = 8;

/**
 * Chooses bucket sizes for a step with DeAR. Predicts the step time for four bucket sizes per doubling by the closed
 * form `dearTimeline`, and returns the plans with the shortest steps. Equal plans are evaluated only once.
 *
 * @param gradientBytes Bytes of each gradient, by bucket number.
 */
export const halvedGroupings = (
  gradientBytes: readonly number[],
  { profile, allReduce, toSentGroups }: HalvedInput,
): { readonly priced: number; readonly groupings: Grouping[] } => {
  // Jobs fill buckets in parameter order, regardless of the order in which gradients become ready.
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
