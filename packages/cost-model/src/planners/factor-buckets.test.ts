import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { groupings, models } from "../../test/profiles.ts";
import { allInOne, onePerTensor } from "../gradient-profile.ts";
import { timelineOf } from "../timeline.ts";
import { factorProfile, planFactorBuckets, type ProfiledFactor } from "./factor-buckets.ts";

/** Returns factors with the given row counts and work seconds: small whole numbers, so that every sum is exact. */
const factorsOf = (rows: readonly (readonly [rows: number, workSeconds: number])[]): readonly ProfiledFactor[] =>
  rows.map(([n, workSeconds], i) => ({ name: `layer-${i}:input`, elements: (n * (n + 1)) / 2, workSeconds }));

const someFactors = (most: number): fc.Arbitrary<readonly ProfiledFactor[]> =>
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.oneof(fc.nat(9), fc.nat(200))), {
      minLength: 1,
      maxLength: most,
    })
    .map(factorsOf);

describe("planFactorBuckets", () => {
  test("exposes as little as the best of all groupings, for up to ten factors", () => {
    fc.assert(
      fc.property(someFactors(10), models, (factors, model) => {
        const profile = factorProfile(factors);
        const { buckets, exposedSeconds } = planFactorBuckets(factors, model);
        expect(buckets.flat()).toEqual(factors.map(({ name }) => name));
        const best = Math.min(
          ...[...groupings(profile)].map((plan) => timelineOf(profile, plan, model).exposedSeconds),
        );
        expect(exposedSeconds).toBe(best);
      }),
      { numRuns: 200 },
    );
  });

  test("is not worse than one message per side or one message for all, also with many factors", () => {
    fc.assert(
      fc.property(someFactors(80), models, (factors, model) => {
        const profile = factorProfile(factors);
        const { exposedSeconds } = planFactorBuckets(factors, model);
        for (const plan of [onePerTensor(profile), allInOne(profile)])
          expect(exposedSeconds).toBeLessThanOrEqual(timelineOf(profile, plan, model).exposedSeconds);
      }),
    );
  });

  test("the longer the last layer takes, the more is hidden", () => {
    fc.assert(
      fc.property(someFactors(20), models, fc.nat(50), (factors, model, more) => {
        const later = factors.map((factor, i) =>
          i === factors.length - 1 ? { ...factor, workSeconds: factor.workSeconds + more } : factor,
        );
        expect(planFactorBuckets(later, model).exposedSeconds).toBeLessThanOrEqual(
          planFactorBuckets(factors, model).exposedSeconds,
        );
      }),
    );
  });

  test("sends triangles of floats: computed by hand", () => {
    // Sizes 3, 6 and 10 floats, ready at 1, 41 and 42 s; b is one second per byte and the start-up takes 5 s.
    const factors = factorsOf([
      [2, 1],
      [3, 40],
      [4, 1],
    ]);
    expect(planFactorBuckets(factors, { startupSeconds: 5, secondsPerByte: 1 })).toEqual({
      buckets: [["layer-0:input"], ["layer-1:input", "layer-2:input"]],
      exposedSeconds: 5 + 4 * 16,
    });
    expect(planFactorBuckets([], { startupSeconds: 5, secondsPerByte: 1 })).toEqual({ buckets: [], exposedSeconds: 0 });
    expect(() => planFactorBuckets([factors[0]!, factors[0]!], { startupSeconds: 5, secondsPerByte: 1 })).toThrow(
      /contains "layer-0:input" twice/,
    );
  });
});
