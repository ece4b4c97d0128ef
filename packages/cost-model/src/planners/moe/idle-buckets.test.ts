import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { passes, times } from "../../../test/moe-layers.ts";
import { groupings, models, profileOf, profiles } from "../../../test/profiles.ts";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import type { GradientProfile } from "../../gradient-profile.ts";
import { planGradientPartition } from "../../study/gradient-partition.ts";
import { type BackwardSegment, planIdleBuckets } from "./idle-buckets.ts";
import { backwardOf, chunkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { layerTimeline } from "./layer-timeline.ts";
import { planPipeline } from "./pipeline-degree.ts";

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const stretchSeconds = (stretch: BackwardSegment, gradientSeconds: number): number =>
  "denseSeconds" in stretch
    ? Math.max(stretch.denseSeconds, gradientSeconds)
    : layerTimeline(chunkSeconds(stretch.experts, stretch.numChunks), {
        numChunks: stretch.numChunks,
        gradientSeconds,
      }).makespanSeconds;

/** Returns the merge class of a gradient, by its path. */
const mergeClass = (path: string): string => (path.endsWith("1") ? "experts" : "others");

interface Situation {
  readonly profile: GradientProfile;
  readonly stretches: readonly BackwardSegment[];
  readonly allReduce: CollectiveModel;
}

const situations = (maxTensors: number, maxStretches: number): fc.Arbitrary<Situation> =>
  profiles({ most: maxTensors }).chain((profile) =>
    fc.record({
      profile: fc.constant(profile),
      allReduce: models,
      stretches: fc
        .array(
          fc.record({
            numReady: fc.nat(profile.tensors.length),
            own: fc.oneof(
              fc.record({ denseSeconds: times }),
              fc.record({ experts: passes, numChunks: fc.constantFrom(1, 2, 4) }),
            ),
          }),
          { maxLength: maxStretches },
        )
        .map((rows) => {
          const ready = rows.map(({ numReady }) => numReady).toSorted((a, b) => a - b);
          return rows.map(({ own }, i): BackwardSegment => ({ numReady: ready[i]!, ...own }));
        }),
    }),
  );

/** Computes the seconds of the all-reduces of these tensors, with one all-reduce per merge class. */
const travelSeconds = (tensors: GradientProfile["tensors"], allReduce: CollectiveModel): number =>
  sum(
    [...Map.groupBy(tensors, ({ path }) => mergeClass(path)).values()]
      .map((own) => sum(own.map(({ bytes }) => bytes)))
      .map((bytes) => (bytes === 0 ? 0 : collectiveSeconds(allReduce, bytes))),
  );

/** Returns the smallest time over all assignments of the gradients, in order, to segments in which they are ready. */
const bruteForce = ({ profile, stretches, allReduce }: Situation, at = 0, sent = 0): number => {
  const stretch = stretches[at];
  if (stretch === undefined) return travelSeconds(profile.tensors.slice(sent), allReduce);
  let least = Infinity;
  for (let end = sent; end <= Math.max(sent, stretch.numReady); end++) {
    const own = stretchSeconds(stretch, travelSeconds(profile.tensors.slice(sent, end), allReduce));
    least = Math.min(least, own + bruteForce({ profile, stretches, allReduce }, at + 1, end));
  }
  return least;
};

describe("planIdleBuckets", () => {
  test("ends as early as the best of all assignments of whole gradients", () => {
    fc.assert(
      fc.property(situations(5, 4), (situation) => {
        const { profile, stretches, allReduce } = situation;
        const plan = planIdleBuckets(profile, stretches, allReduce, { mergeClassOf: mergeClass });
        expect(plan.seconds).toBe(bruteForce(situation));
        expect(plan.backwardSeconds).toBe(sum(stretches.map((stretch) => stretchSeconds(stretch, 0))));
      }),
      { numRuns: 200 },
    );
  });

  test("contains every gradient once, in order within each merge class", () => {
    fc.assert(
      fc.property(situations(10, 8), ({ profile, stretches, allReduce }) => {
        const paths = profile.tensors.map(({ path }) => path);
        const unconstrained = planIdleBuckets(profile, stretches, allReduce).buckets;
        expect(unconstrained.flat()).toEqual(paths);
        expect([...groupings(profile)]).toContainEqual(unconstrained);
        const { buckets } = planIdleBuckets(profile, stretches, allReduce, { mergeClassOf: mergeClass });
        expect(buckets.flat().toSorted()).toEqual(paths.toSorted());
        for (const bucket of buckets) expect(new Set(bucket.map(mergeClass)).size).toBe(1);
      }),
      { numRuns: 50 },
    );
  });

  test("ends no earlier than with divisible gradients, and no later than with all gradients after the backward pass", () => {
    const layers = fc.array(
      fc.record({ experts: passes, denseSeconds: times, bytes: fc.array(fc.nat(20), { maxLength: 3 }) }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(layers, models, fc.constantFrom(1, 2, 4), (own, allReduce, numChunks) => {
        const profile = profileOf(own.flatMap(({ bytes }) => bytes.map((one) => ({ bytes: one, backwardSeconds: 0 }))));
        let numReady = 0;
        const stretches = own.flatMap(({ experts, denseSeconds, bytes }): BackwardSegment[] => {
          const both = [
            { numReady, experts, numChunks },
            { numReady, denseSeconds },
          ];
          numReady += bytes.length;
          return both;
        });
        const plan = planIdleBuckets(profile, stretches, allReduce);
        const bytes = sum(profile.tensors.map((tensor) => tensor.bytes));
        const cut = planGradientPartition(
          own.map(({ bytes: each, ...layer }) => ({ ...layer, gradientBytes: sum(each) })),
          allReduce,
          { degrees: [numChunks], intraNodeOrders: ["gathers-first"], numParts: Math.max(1, bytes) },
        );
        expect(plan.seconds).toBeGreaterThanOrEqual(cut.seconds);
        const after = bytes === 0 ? 0 : collectiveSeconds(allReduce, bytes);
        expect(plan.seconds).toBeLessThanOrEqual(plan.backwardSeconds + after);
      }),
      { numRuns: 100 },
    );
  });

  test("fits all-reduces behind experts, and among equal plans sends earlier", () => {
    // Dispatch and combine take one second each, and the experts take four seconds: an all-reduce of four seconds is
    // hidden.
    const line = { startupSeconds: 0, secondsPerByte: 1 };
    const nothing = { model: line, bytes: 0 };
    const experts: MoeLayerPass = {
      allToAll: { model: line, bytes: 1 },
      allGather: nothing,
      reduceScatter: nothing,
      experts: { startupSeconds: 0, workSeconds: 2 },
    };
    expect(planPipeline(backwardOf(experts), 4, { degrees: [1] }).seconds).toBe(6);
    const profile = profileOf([3, 1, 3, 5].map((bytes) => ({ bytes, backwardSeconds: 1 })));
    const stretches = [2, 3, 3].map((numReady) => ({ numReady, experts: backwardOf(experts), numChunks: 1 }));
    const plan = planIdleBuckets(profile, stretches, line);
    expect(plan).toEqual({ buckets: [["t0", "t1"], ["t2"], ["t3"]], seconds: 18 + 5, backwardSeconds: 18 });
    const two = profileOf([3, 5].map((bytes) => ({ bytes, backwardSeconds: 1 })));
    expect(planIdleBuckets(two, [{ numReady: 1, denseSeconds: 0 }], line).buckets).toEqual([["t0"], ["t1"]]);
  });

  test.each([
    [[3], /segment 0 .* has 3 of 2 gradients ready/],
    [[1, 0], /segment 1 .* has 0 of 2 gradients ready, but the number must be whole and must not decrease/],
    [[0.5], /segment 0 .* has 0.5 of 2/],
  ])("rejects segments with %j ready gradients", (ready, message) => {
    const profile = profileOf([1, 1].map((bytes) => ({ bytes, backwardSeconds: 1 })));
    const stretches = ready.map((numReady) => ({ numReady, denseSeconds: 1 }));
    expect(() => planIdleBuckets(profile, stretches, { startupSeconds: 0, secondsPerByte: 1 })).toThrow(message);
  });
});
