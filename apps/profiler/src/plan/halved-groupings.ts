import { dearTimeline, type GradientProfile, halvesOf, type LinearCollectiveModel, planDear } from "@skein/cost-model";
import { type Grouping, oneBucketBytes, sizesBelow } from "./groupings.ts";

/** Plans that are simulated, of those that the closed form has priced. */
const most = 8;

/**
 * Buckets for a step in halves: of all sizes, a quarter of a doubling apart, those whose closed form is shortest
 * (`dearTimeline`), plans that come to the same once.
 *
 * @param gradientBytes by the number of the bucket.
 * @param profile of the step, by the same numbers, with what each tensor's forward takes.
 */
export const halvedGroupings = (
  gradientBytes: readonly number[],
  profile: GradientProfile,
  allReduce: LinearCollectiveModel,
): { readonly priced: number; readonly groupings: Grouping[] } => {
  // Jobs fill buckets in the order of the parameters' tree; what becomes ready when does not change them.
  const inTree = {
    tensors: gradientBytes.map((bytes, bucket) => ({ path: String(bucket), bytes, backwardSeconds: 0 })),
  };
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const sizes = [...sizesBelow(total, 4), oneBucketBytes];
  const plans = new Map(sizes.map((bytes) => [JSON.stringify(planDear(inTree, bytes)), bytes]));
  const priced = [...plans.values()].map((bytes) => {
    const plan = planDear(inTree, bytes);
    return { bytes, plan, seconds: dearTimeline(profile, plan, halvesOf(allReduce)).iterationSeconds };
  });
  const groupings = priced
    .toSorted((a, b) => a.seconds - b.seconds)
    .slice(0, most)
    .map(
      ({ bytes, plan }): Grouping => ({
        buckets: { kind: "fixed-size", bytes },
        priorities: "none",
        groups: plan.map((paths) => paths.map(Number)),
      }),
    );
  return { priced: priced.length, groupings };
};
