import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allInOne,
  backwardSeconds,
  collectiveSeconds,
  forwardSeconds,
  type GradientProfile,
  onePerTensor,
  timelineOf,
} from "../src/index.ts";
import { dearTimeline, halvesOf, planDear } from "../src/planners.ts";
import { plannedBuckets } from "../src/gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { models, planned, profileOf, profiles } from "./profiles.ts";

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe("dearTimeline", () => {
  const profile = profileOf([
    { bytes: 2, backwardSeconds: 2, forwardSeconds: 3 },
    { bytes: 4, backwardSeconds: 2, forwardSeconds: 3 },
  ]);
  const halves = {
    reduceScatter: { startupSeconds: 1, secondsPerByte: 0 },
    allGather: { startupSeconds: 0, secondsPerByte: 1 },
  };

  test("has the times of both halves, and of the waits of the forward pass", () => {
    const { collectives, ...rest } = dearTimeline(profile, [["t0"], ["t1"]], halves);
    expect(
      collectives.map(({ kind, bucket, startSeconds, endSeconds }) => [kind, bucket, startSeconds, endSeconds]),
    ).toEqual([
      ["reduce-scatter", 0, 2, 3],
      ["reduce-scatter", 1, 4, 5],
      ["all-gather", 1, 5, 9],
      ["all-gather", 0, 9, 11],
    ]);
    // Tensor t1 runs from 9 to 12, t0 from 12 to 15: only the first all-gather and the last reduce-scatter are exposed.
    expect(rest).toEqual({
      backwardEndSeconds: 4,
      communicationEndSeconds: 11,
      exposedSeconds: 5,
      iterationSeconds: 15,
    });
  });

  test("one ahead is never faster than all at the barrier", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        const oneAhead = dearTimeline(profile, plan, halvesOf(model), { allGathers: "one-ahead" }).iterationSeconds;
        expect(oneAhead).toBeGreaterThanOrEqual(dearTimeline(profile, plan, halvesOf(model)).iterationSeconds);
      }),
    );
  });

  test("one ahead waits for the forward pass although the network is free", () => {
    const slow = { reduceScatter: halves.reduceScatter, allGather: { startupSeconds: 2, secondsPerByte: 0 } };
    const three = profileOf([1, 1, 1].map(() => ({ bytes: 1, backwardSeconds: 1, forwardSeconds: 5 })));
    const starts = (allGathers: "queued" | "one-ahead"): number[] =>
      dearTimeline(three, onePerTensor(three), slow, { allGathers })
        .collectives.slice(3)
        .map(({ startSeconds }) => startSeconds);
    expect(starts("queued")).toEqual([4, 6, 8]);
    expect(starts("one-ahead")).toEqual([4, 6, 11]);
  });

  test("no forward before its all-gather, no reduce-scatter before its gradients, no all-gather before the barrier", () => {
    fc.assert(
      fc.property(planned(), models, fc.constantFrom("queued", "one-ahead"), ([profile, plan], model, allGathers) => {
        const { collectives, iterationSeconds, backwardEndSeconds } = dearTimeline(profile, plan, halvesOf(model), {
          allGathers,
        });
        const buckets = plannedBuckets(profile, plan);
        const [scatters, gathers] = [collectives.slice(0, plan.length), collectives.slice(plan.length)];
        const barrier = Math.max(backwardEndSeconds, scatters.at(-1)!.endSeconds);
        expect(gathers.map(({ bucket }) => bucket)).toEqual(scatters.map(({ bucket }) => bucket).reverse());
        for (const [i, { startSeconds }] of scatters.entries())
          expect(startSeconds).toBeGreaterThanOrEqual(
            Math.max(buckets[i]!.readySeconds, scatters[i - 1]?.endSeconds ?? 0),
          );
        for (const [i, { bucket, startSeconds, endSeconds }] of gathers.entries()) {
          expect(startSeconds).toBeGreaterThanOrEqual(gathers[i - 1]?.endSeconds ?? barrier);
          // The forward computation of a bucket, and all later computation, follows the bucket's all-gather.
          const paths = new Set(plan.slice(0, bucket + 1).flat());
          const after = sum(
            profile.tensors.filter(({ path }) => paths.has(path)).map((tensor) => tensor.forwardSeconds ?? 0),
          );
          expect(iterationSeconds).toBeGreaterThanOrEqual(endSeconds + after);
        }
        // Ideal time according to the paper.
        const total = (spans: typeof collectives): number =>
          sum(spans.map((span) => span.endSeconds - span.startSeconds));
        const ideal =
          Math.max(forwardSeconds(profile), total(gathers)) + Math.max(backwardSeconds(profile), total(scatters));
        expect(iterationSeconds).toBeGreaterThanOrEqual(ideal);
      }),
    );
  });

  /**
   * Returns whether, for every bucket, the all-gathers from the second bucket up to this bucket take no longer than the
   * forward pass before this bucket.
   */
  const hides = (profile: GradientProfile, plan: BucketPlan, allGather: (bytes: number) => number): boolean => {
    const forward = new Map(profile.tensors.map((tensor) => [tensor.path, tensor.forwardSeconds ?? 0]));
    const inForwardOrder = plannedBuckets(profile, plan).toReversed();
    const passes = plan.toReversed().map((paths) => sum(paths.map((path) => forward.get(path)!)));
    return inForwardOrder.every(
      (_, i) => sum(inForwardOrder.slice(1, i + 1).map(({ bytes }) => allGather(bytes))) <= sum(passes.slice(0, i)),
    );
  };

  test("is no longer than wait-free backpropagation with the same buckets, if the forward pass hides the later all-gathers", () => {
    let numHidden = 0;
    fc.assert(
      fc.property(planned(), models, fc.nat(3), ([drawn, plan], { startupSeconds, secondsPerByte }, longer) => {
        const profile = {
          tensors: drawn.tensors.map((tensor) => ({ ...tensor, forwardSeconds: tensor.forwardSeconds! * 4 ** longer })),
        };
        // Even values, so that halves are exact.
        const allReduce = { startupSeconds: 2 * startupSeconds, secondsPerByte: 2 * secondsPerByte };
        const halves = halvesOf(allReduce);
        fc.pre(hides(profile, plan, (bytes) => collectiveSeconds(halves.allGather, bytes)));
        if (plan.length > 1) numHidden++;
        expect(dearTimeline(profile, plan, halves).iterationSeconds).toBeLessThanOrEqual(
          timelineOf(profile, plan, allReduce).iterationSeconds,
        );
      }),
    );
    expect(numHidden).toBeGreaterThan(10);
  });

  test("is longer if backward hides the all-reduce but forward is too short for the all-gather", () => {
    const early = profileOf([
      { bytes: 8, backwardSeconds: 0 },
      { bytes: 0, backwardSeconds: 10 },
    ]);
    const allReduce = { startupSeconds: 0, secondsPerByte: 1 };
    expect(timelineOf(early, onePerTensor(early), allReduce).iterationSeconds).toBe(10);
    expect(dearTimeline(early, onePerTensor(early), halvesOf(allReduce)).iterationSeconds).toBe(14);
  });
});

describe("planDear", () => {
  test("fills buckets from the first layer of the forward pass", () => {
    const profile = profileOf([3, 3, 3, 9, 3].map((bytes) => ({ bytes, backwardSeconds: 1 })));
    expect(planDear(profile, 6)).toEqual([["t0"], ["t1", "t2"], ["t3"], ["t4"]]);
    expect(planDear(profile, 1)).toEqual(onePerTensor(profile));
    expect(planDear(profile, Infinity)).toEqual(allInOne(profile));
    expect(() => planDear(profile, 0)).toThrow("the bucket size is 0 bytes");
  });

  test("contains each tensor once, in ready order, and no bucket of several tensors exceeds the size", () => {
    fc.assert(
      fc.property(profiles(), fc.integer({ min: 1, max: 60 }), (profile, bucketBytes) => {
        const plan = planDear(profile, bucketBytes);
        expect(plan.flat()).toEqual(profile.tensors.map(({ path }) => path));
        plannedBuckets(profile, plan).forEach(({ bytes }, i) =>
          expect(plan[i]!.length === 1 || bytes <= bucketBytes).toBe(true),
        );
      }),
    );
  });
});
