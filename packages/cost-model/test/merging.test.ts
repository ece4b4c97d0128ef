import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  allInOne,
  type CollectiveModel,
  type GradientProfile,
  type LinearCollectiveModel,
  onePerTensor,
  simultaneousTimeline,
  timelineOf,
  twoAtOnce,
} from "../src/index.ts";
import { planMgWfbp, planMgWfbpOptimal, planSimultaneous } from "../src/planners.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { groupings, models, profileOf, profiles } from "./profiles.ts";

const endOf = (profile: GradientProfile, plan: BucketPlan, model: CollectiveModel): number =>
  timelineOf(profile, plan, model).communicationEndSeconds;
const bestEnd = (profile: GradientProfile, model: CollectiveModel): number =>
  Math.min(...[...groupings(profile)].map((plan) => endOf(profile, plan, model)));

/** A model whose start-up increases at 20 bytes, and whose time per byte is smaller above 20 bytes. */
const pieces: CollectiveModel = {
  pieces: [
    { fromBytes: 0, startupSeconds: 2, secondsPerByte: 3 },
    { fromBytes: 20, startupSeconds: 30, secondsPerByte: 1 },
  ],
};

describe("planMgWfbpOptimal", () => {
  test("ends as early as the best of all groupings, for any model", () => {
    fc.assert(
      fc.property(profiles({ most: 10 }), fc.oneof(models, fc.constant(pieces)), (profile, model) => {
        const plan = planMgWfbpOptimal(profile, model);
        expect(plan.flat()).toEqual(profile.tensors.map(({ path }) => path));
        expect(endOf(profile, plan, model)).toBe(bestEnd(profile, model));
      }),
      { numRuns: 200 },
    );
  });

  test("is not slower than one per tensor, all in one, and greedy, also with many tensors", () => {
    fc.assert(
      fc.property(profiles({ most: 60 }), models, (profile, model) => {
        const best = endOf(profile, planMgWfbpOptimal(profile, model), model);
        for (const plan of [onePerTensor(profile), allInOne(profile), planMgWfbp(profile, model)])
          expect(best).toBeLessThanOrEqual(endOf(profile, plan, model));
      }),
    );
  });

  test("without start-up nothing beats one per tensor; with a very long start-up all tensors are merged", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), models, (profile, { secondsPerByte }) => {
        const noStartup = { startupSeconds: 0, secondsPerByte };
        expect(endOf(profile, planMgWfbpOptimal(profile, noStartup), noStartup)).toBe(
          endOf(profile, onePerTensor(profile), noStartup),
        );
        const endless = { startupSeconds: 1e9, secondsPerByte };
        expect(planMgWfbpOptimal(profile, endless)).toHaveLength(1);
        expect(planMgWfbp(profile, endless)).toHaveLength(1);
      }),
    );
  });

  test("prefers the larger last bucket among equal ends", () => {
    const profile = profileOf([1, 1, 1].map((bytes) => ({ bytes, backwardSeconds: 1 })));
    expect(planMgWfbpOptimal(profile, { startupSeconds: 0, secondsPerByte: 0 })).toEqual([["t0", "t1", "t2"]]);
  });

  test("if bytes cost nothing, only ready times and the number of buckets matter", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), fc.nat(12), (profile, startupSeconds) => {
        const model = { startupSeconds, secondsPerByte: 0 };
        const heavier = { tensors: profile.tensors.map((tensor) => ({ ...tensor, bytes: 7 * tensor.bytes + 1 })) };
        expect(planMgWfbpOptimal(heavier, model)).toEqual(planMgWfbpOptimal(profile, model));
        // In any plan, the last gradient is ready at the end of the backward pass, and at least one start-up follows.
        const last = timelineOf(profile, planMgWfbpOptimal(profile, model), model);
        expect(last.exposedSeconds).toBe(startupSeconds);
      }),
    );
  });

  test("its end increases with a, b and every value of the profile", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), models, fc.nat(9), (profile, model, at) => {
        const end = (p: GradientProfile, m: CollectiveModel): number => endOf(p, planMgWfbpOptimal(p, m), m);
        const before = end(profile, model);
        expect(end(profile, { ...model, startupSeconds: model.startupSeconds + 2 })).toBeGreaterThanOrEqual(before);
        expect(end(profile, { ...model, secondsPerByte: model.secondsPerByte + 1 })).toBeGreaterThanOrEqual(before);
        for (const key of ["bytes", "backwardSeconds"] as const) {
          const more = {
            tensors: profile.tensors.map((t, i) =>
              i === at % profile.tensors.length ? { ...t, [key]: t[key] + 5 } : t,
            ),
          };
          expect(end(more, model)).toBeGreaterThanOrEqual(before);
        }
      }),
    );
  });

  test("doubling all values gives the same plan", () => {
    fc.assert(
      fc.property(profiles(), models, (profile, { startupSeconds, secondsPerByte }) => {
        const twice = { tensors: profile.tensors.map((t) => ({ ...t, backwardSeconds: 2 * t.backwardSeconds })) };
        const twiceModel = { startupSeconds: 2 * startupSeconds, secondsPerByte: 2 * secondsPerByte };
        expect(planMgWfbpOptimal(twice, twiceModel)).toEqual(
          planMgWfbpOptimal(profile, { startupSeconds, secondsPerByte }),
        );
        expect(planMgWfbp(twice, twiceModel)).toEqual(planMgWfbp(profile, { startupSeconds, secondsPerByte }));
      }),
    );
  });
});

describe("gradients that are averaged over different ranks", () => {
  const kinds = 3;
  const kindOf = (path: string): string => `${Number(path.slice(1)) % kinds}`;
  /** Profiles in which each tensor has a random merge class. */
  const mixed = profiles({ most: 8 }).chain((profile) =>
    fc
      .array(fc.nat(kinds - 1), { minLength: profile.tensors.length, maxLength: profile.tensors.length })
      .map((drawn) => ({ profile, apart: (path: string) => `${drawn[Number(path.slice(1))]}` })),
  );
  /**
   * Returns the messages of each group of consecutive tensors: one message per merge class, ordered by the time when
   * the last gradient of the message is ready.
   */
  const split = (plan: BucketPlan, apart: (path: string) => string): BucketPlan =>
    plan.flatMap((run) => {
      const messages: string[][] = [];
      for (const path of run.toReversed()) {
        const own = messages.find(([first]) => apart(first!) === apart(path));
        if (own === undefined) messages.push([path]);
        else own.unshift(path);
      }
      return messages.reverse();
    });
  const planners = [
    ["exact", planMgWfbpOptimal],
    ["greedy", planMgWfbp],
    ["simultaneous", (profile, model, options) => planSimultaneous(profile, model, twoAtOnce, options)],
  ] as const satisfies readonly (readonly [string, typeof planMgWfbp])[];

  test.each(planners)("never share a bucket, and each is in one: %s", (_name, plan) => {
    fc.assert(
      fc.property(mixed, models, ({ profile, apart }, model) => {
        const buckets = plan(profile, model, { mergeClassOf: apart });
        expect(buckets.flat().toSorted()).toEqual(profile.tensors.map(({ path }) => path).toSorted());
        for (const bucket of buckets) expect(new Set(bucket.map(apart)).size).toBe(1);
      }),
    );
    expect(plan(profileOf([]), { startupSeconds: 1, secondsPerByte: 1 }, { mergeClassOf: kindOf })).toEqual([]);
  });

  test.each(planners.slice(0, 2))(
    "share one message per merge class if the start-up is very long: %s",
    (_name, plan) => {
      const profile = profileOf(Array.from({ length: 9 }, () => ({ bytes: 4, backwardSeconds: 1 })));
      const buckets = plan(profile, { startupSeconds: 1e9, secondsPerByte: 1 }, { mergeClassOf: kindOf });
      expect(buckets).toEqual([
        ["t0", "t3", "t6"],
        ["t1", "t4", "t7"],
        ["t2", "t5", "t8"],
      ]);
    },
  );

  test("planMgWfbpOptimal ends as early as the best of all groupings of neighbors", () => {
    fc.assert(
      fc.property(mixed, fc.oneof(models, fc.constant(pieces)), ({ profile, apart }, model) => {
        const best = Math.min(...[...groupings(profile)].map((plan) => endOf(profile, split(plan, apart), model)));
        expect(endOf(profile, planMgWfbpOptimal(profile, model, { mergeClassOf: apart }), model)).toBe(best);
      }),
    );
  });

  test("planSimultaneous then ends no later than planMgWfbpOptimal", () => {
    const end = (profile: GradientProfile, plan: BucketPlan, model: LinearCollectiveModel): number =>
      simultaneousTimeline(profile, plan, model, twoAtOnce).communicationEndSeconds;
    fc.assert(
      fc.property(mixed, models, ({ profile, apart }, model) => {
        const plan = planSimultaneous(profile, model, twoAtOnce, { mergeClassOf: apart });
        const other = planMgWfbpOptimal(profile, model, { mergeClassOf: apart });
        expect(end(profile, plan, model)).toBeLessThanOrEqual(end(profile, other, model) * (1 + 1e-12));
      }),
    );
  });
});

describe("planMgWfbp", () => {
  test("is not optimal: it ends at 9, and the optimum at 8", () => {
    const profile = profileOf([
      { bytes: 1, backwardSeconds: 1 },
      { bytes: 1, backwardSeconds: 1 },
      { bytes: 1, backwardSeconds: 2 },
    ]);
    const model = { startupSeconds: 2, secondsPerByte: 1 };
    expect(planMgWfbp(profile, model)).toEqual([["t0", "t1"], ["t2"]]);
    expect(endOf(profile, planMgWfbp(profile, model), model)).toBe(9);
    expect(planMgWfbpOptimal(profile, model)).toEqual([["t0"], ["t1", "t2"]]);
    expect(endOf(profile, planMgWfbpOptimal(profile, model), model)).toBe(8);
  });

  test("contains every tensor once, in ready order", () => {
    fc.assert(
      fc.property(profiles(), models, (profile, model) => {
        expect(planMgWfbp(profile, model).flat()).toEqual(profile.tensors.map(({ path }) => path));
      }),
    );
  });
});
