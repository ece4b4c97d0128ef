import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkExpertPlacement } from "./expert-placement.ts";
import { placeHeaviestFirst } from "./heaviest-first.ts";
import { loadsOfRanks, slotsOfExperts } from "./placement-lookups.ts";

describe("placeHeaviestFirst", () => {
  test("places every expert once, and keeps ranks within the heaviest expert of the mean", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(100), { minLength: 1, maxLength: 4 }), (n, some) => {
        const loads = Array.from({ length: n }, () => some).flat();
        const placement = placeHeaviestFirst(loads, { numRanks: n });
        checkExpertPlacement(placement);
        for (const slots of slotsOfExperts(placement)) expect(slots).toHaveLength(1);
        const mean = loads.reduce((a, b) => a + b, 0) / n;
        expect(Math.max(...loadsOfRanks(placement, loads))).toBeLessThanOrEqual(mean + Math.max(...loads) + 1e-9);
      }),
    );
  });

  test("gives busy ranks the light experts", () => {
    expect(placeHeaviestFirst([1, 8, 2, 9], { numRanks: 2 }).expertOfSlot).toEqual([3, 0, 1, 2]);
    expect(placeHeaviestFirst([1, 8, 2, 9], { numRanks: 2, rankLoads: [20, 0] }).expertOfSlot).toEqual([2, 0, 3, 1]);
  });

  test.each([
    [[1, 2, 3], { numRanks: 2 }, /3 experts are not divisible by 2 ranks/],
    [[1, 2], { numRanks: 2, rankLoads: [1] }, /1 rankLoads for 2 ranks/],
    [[1, 2], { numRanks: 2, rankLoads: [1, Infinity] }, /the load of rank 1 is Infinity/],
  ])("rejects %j with %j", (loads, options, message) => {
    expect(() => placeHeaviestFirst(loads, options)).toThrow(message);
  });
});
