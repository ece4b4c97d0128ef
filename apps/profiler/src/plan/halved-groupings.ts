import { dearTimeline, type GradientProfile, halvesOf, type LinearCollectiveModel, planDear } from "@skein/cost-model";
import { type Grouping, oneBucketBytes, sizesBelow } from "../predict/groupings.ts";

/** What halves of an exchange follow from. */
export interface HalvedInput {
  /** Of what is sent, by the numbers of buckets, with what each tensor's forward takes. */
  readonly profile: GradientProfile;
  readonly allReduce: LinearCollectiveModel;
  /** The messages of buckets, see `sentGroups`. */
  readonly asSent: (groups: Grouping["groups"]) => Grouping["groups"];
}

/** Plans that are simulated, of those that the closed form has priced. */
const most = 8;

/**
 * Buckets for a step in halves: of all sizes, a quarter of a doubling apart, those whose closed form is shortest
 * (`dearTimeline`), plans that come to the same once.
 *
 * @param gradientBytes by the number of the bucket.
 */
export const halvedGroupings = (
  gradientBytes: readonly number[],
  { profile, allReduce, asSent }: HalvedInput,
): { readonly priced: number; readonly groupings: Grouping[] } => {
  // Jobs fill buckets in the order of the parameters' tree; what becomes ready when does not change them.
  const inTree = {
    tensors: gradientBytes.map((bytes, bucket) => ({ path: String(bucket), bytes, backwardSeconds: 0 })),
  };
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const sizes = [...sizesBelow(total, 4), oneBucketBytes];
  const plans = new Map(sizes.map((bytes) => [JSON.stringify(planDear(inTree, bytes)), bytes]));
  const priced = [...plans.values()].map((bytes) => {
    const groups = asSent(planDear(inTree, bytes).map((paths) => paths.map(Number)));
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
