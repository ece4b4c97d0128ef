import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { groupings, models, planned, profileOf, profiles } from "../test/profiles.ts";
import { allInOne, onePerTensor } from "./gradient-profile.ts";
import { planSimultaneous } from "./planners/asc.ts";
import { planMgWfbpOptimal } from "./planners/mg-wfbp-exact.ts";
import { simultaneousTimeline, twoAtOnce } from "./simultaneous-timeline.ts";
import { timelineOf } from "./timeline.ts";

describe("simultaneousTimeline", () => {
  test("two collectives that begin together take a + 1.5 · b · M each; the rest of the larger one continues alone", () => {
    const model = { startupSeconds: 2, secondsPerByte: 1 };
    const ends = (...bytes: number[]): number[] => {
      const profile = profileOf(bytes.map((size) => ({ bytes: size, backwardSeconds: 0 })));
      return simultaneousTimeline(profile, onePerTensor(profile), model, twoAtOnce).collectives.map(
        ({ endSeconds }) => endSeconds,
      );
    };
    expect(ends(4, 4)).toEqual([8, 8]);
    expect(ends(4, 6)).toEqual([8, 10]);
    // A third collective begins when one of two collectives ends; its start-up delays no other collective.
    expect(ends(4, 6, 1)).toEqual([8, 10, 11]);
  });

  test("one at a time equals the timeline of wait-free backpropagation", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        expect(simultaneousTimeline(profile, plan, model, [1])).toEqual(timelineOf(profile, plan, model));
      }),
    );
  });

  test("if k take k times as long and start-ups are free, all end when they would in sequence", () => {
    fc.assert(
      fc.property(planned(), fc.nat(3), ([profile, plan], secondsPerByte) => {
        const model = { startupSeconds: 0, secondsPerByte };
        const { communicationEndSeconds } = simultaneousTimeline(profile, plan, model, [1, 2, 3]);
        expect(communicationEndSeconds).toBeCloseTo(timelineOf(profile, plan, model).communicationEndSeconds, 9);
      }),
    );
  });

  test("ends no later than one at a time; each collective takes between its time alone and its slowed time; concurrency stays within its limit", () => {
    const slowdowns = fc.constantFrom([1, 1.5], [1, 1.25, 2], [1, 2]);
    fc.assert(
      fc.property(planned(), models, slowdowns, ([profile, plan], model, slowdown) => {
        const { collectives, communicationEndSeconds } = simultaneousTimeline(profile, plan, model, slowdown);
        const serial = timelineOf(profile, plan, model).communicationEndSeconds;
        expect(communicationEndSeconds).toBeLessThanOrEqual(serial * (1 + 1e-12));
        expect(collectives).toHaveLength(plan.length);
        for (const { bytes, startSeconds, endSeconds } of collectives) {
          const transfer = model.secondsPerByte * bytes;
          expect(endSeconds - startSeconds).toBeGreaterThan(model.startupSeconds + transfer - 1e-9);
          expect(endSeconds - startSeconds).toBeLessThan(model.startupSeconds + slowdown.at(-1)! * transfer + 1e-9);
          const concurrent = collectives.filter(
            (other) => other.startSeconds <= startSeconds && other.endSeconds > startSeconds,
          );
          expect(concurrent.length).toBeLessThanOrEqual(slowdown.length);
        }
      }),
    );
  });

  test("rejects invalid slowdowns", () => {
    for (const slowdown of [[], [2], [1, 0.5], [1, Number.NaN], [1, Infinity]])
      expect(() =>
        simultaneousTimeline({ tensors: [] }, [], { startupSeconds: 0, secondsPerByte: 0 }, slowdown),
      ).toThrow("slowdowns are [");
  });
});

describe("planSimultaneous", () => {
  test("is never slower than its three starting points, and usually the best of all groupings", () => {
    let [numOptimal, numAll, worst] = [0, 0, 1];
    fc.assert(
      fc.property(profiles({ most: 8, least: 1 }), models, (profile, model) => {
        const end = (plan: readonly (readonly string[])[]): number =>
          simultaneousTimeline(profile, plan, model, twoAtOnce).communicationEndSeconds;
        const found = end(planSimultaneous(profile, model, twoAtOnce));
        for (const plan of [planMgWfbpOptimal(profile, model), onePerTensor(profile), allInOne(profile)])
          expect(found).toBeLessThanOrEqual(end(plan));
        const best = Math.min(...[...groupings(profile)].map(end));
        expect(found).toBeGreaterThanOrEqual(best);
        numAll++;
        if (found <= best * (1 + 1e-12)) numOptimal++;
        else worst = Math.max(worst, found / best);
      }),
      { numRuns: 150, seed: 1 },
    );
    expect(numOptimal / numAll).toBeGreaterThan(0.9);
    expect(worst).toBeLessThan(1.15);
  });

  test("merges into as many buckets as may be concurrent if start-ups are long", () => {
    const profile = profileOf([8, 8, 8, 8].map((bytes) => ({ bytes, backwardSeconds: 0 })));
    const model = { startupSeconds: 100, secondsPerByte: 1 };
    expect(planSimultaneous(profile, model, [1])).toEqual(allInOne(profile));
    expect(planSimultaneous(profile, model, [1, 1.5])).toEqual([
      ["t0", "t1"],
      ["t2", "t3"],
    ]);
  });

  test("a profile without tensors has no buckets", () => {
    expect(planSimultaneous({ tensors: [] }, { startupSeconds: 1, secondsPerByte: 1 }, twoAtOnce)).toEqual([]);
  });
});
