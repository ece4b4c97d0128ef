import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planShadowing, fasterMoeDefaults } from "./shadowing.ts";

/** Costs for which a token takes 3 · 1 + 4 · 1 = 7 s, and sending an expert takes 14 s. */
const simple = { modelWidth: 1, hiddenWidth: 7, bytesPerNumber: 1, bytesPerSecond: 1, flopsPerSecond: 28 };
const counts = fc.array(fc.oneof(fc.nat(5), fc.nat(10000)), { minLength: 1, maxLength: 8 });

describe("planShadowing", () => {
  test("follows the formulas, with the published defaults", () => {
    // c = 2.918e-6 s, s = 1.311e-6 s per token; m = 10.737 ms per expert; 3c + 4s = 13.99621e-6 s.
    const { experts, seconds, unshadowedSeconds } = planShadowing([100, 5000, 3000, 100]);
    expect(unshadowedSeconds).toBeCloseTo(13.99621e-6 * 5000, 7);
    expect(experts).toEqual([1, 2]);
    expect(seconds).toBeCloseTo(13.99621e-6 * 100 + 2 * 10.737418e-3, 7);
  });

  test("shadows the heaviest experts while each gains time, and stops at the first without gain", () => {
    fc.assert(
      fc.property(counts, (counts) => {
        const { experts, seconds, unshadowedSeconds } = planShadowing(counts);
        const sorted = [...counts].sort((a, b) => b - a);
        expect(experts.map((expert) => counts[expert])).toEqual(sorted.slice(0, experts.length));
        expect(new Set(experts).size).toBe(experts.length);
        const perToken = sorted[0] === 0 ? 0 : unshadowedSeconds / sorted[0]!;
        const perExpert = 10.7374182e-3;
        for (let i = 0; i < experts.length; i++)
          expect((sorted[i]! - (sorted[i + 1] ?? 0)) * perToken).toBeGreaterThan(perExpert * (1 - 1e-6));
        const next = (sorted[experts.length] ?? 0) - (sorted[experts.length + 1] ?? 0);
        expect(next * perToken).toBeLessThanOrEqual(perExpert * (1 + 1e-6));
        expect(seconds).toBeLessThanOrEqual(unshadowedSeconds);
      }),
    );
  });

  test("shadows nothing without load, one expert with all load, and no expert for equal loads before the last", () => {
    expect(planShadowing([0, 0]).experts).toEqual([]);
    expect(planShadowing([0, 5000, 0]).experts).toEqual([1]);
    expect(planShadowing([5000, 5000]).experts).toEqual([]);
    expect(planShadowing([5000]).experts).toEqual([0]);
  });

  test("does not shadow an expert without net gain", () => {
    expect(planShadowing([2], simple)).toEqual({ experts: [], seconds: 14, unshadowedSeconds: 14 });
    expect(planShadowing([3], simple)).toEqual({ experts: [0], seconds: 14, unshadowedSeconds: 21 });
  });

  test("rejects invalid figures", () => {
    expect(() => planShadowing([1], { ...simple, flopsPerSecond: Infinity })).toThrow(/flopsPerSecond is Infinity/);
    expect(() => planShadowing([1], { ...fasterMoeDefaults, modelWidth: 0 })).toThrow(/modelWidth is 0/);
    expect(() => planShadowing([-1])).toThrow(/the load of expert 0 is -1/);
  });
});
