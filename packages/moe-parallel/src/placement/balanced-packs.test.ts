import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { balancedPacks } from "./balanced-packs.ts";

const items = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 }))
  .chain(([numPacks, room]) =>
    fc.tuple(
      fc.constant(numPacks),
      fc.array(fc.oneof(fc.nat(3), fc.nat(100)), { minLength: numPacks * room, maxLength: numPacks * room }),
    ),
  );
const weightsOf = (packs: readonly (readonly number[])[], loads: readonly number[]): number[] =>
  packs.map((pack) => pack.reduce((sum, item) => sum + loads[item]!, 0));

/** Returns the smallest possible maximum load of packs with equal numbers of items, by exhaustive search. */
const optimum = (loads: readonly number[], numPacks: number): number => {
  const packs = Array.from({ length: numPacks }, () => ({ weight: 0, room: loads.length / numPacks }));
  const best = (item: number): number => {
    if (item === loads.length) return Math.max(...packs.map(({ weight }) => weight));
    let least = Infinity;
    for (const pack of packs) {
      if (pack.room === 0) continue;
      pack.room -= 1;
      pack.weight += loads[item]!;
      least = Math.min(least, best(item + 1));
      pack.room += 1;
      pack.weight -= loads[item]!;
    }
    return least;
  };
  return best(0);
};

describe("balancedPacks", () => {
  test("packs every item once, with equal numbers per pack", () => {
    fc.assert(
      fc.property(items, ([numPacks, loads]) => {
        const packs = balancedPacks(loads, numPacks);
        expect(packs.flat().toSorted((a, b) => a - b)).toEqual(loads.map((_, item) => item));
        for (const pack of packs) expect(pack).toHaveLength(loads.length / numPacks);
      }),
    );
  });

  test("no pack exceeds the mean by more than the heaviest item, or 4/3 of the optimum", () => {
    fc.assert(
      fc.property(items, ([numPacks, loads]) => {
        const heaviest = Math.max(...weightsOf(balancedPacks(loads, numPacks), loads));
        const mean = loads.reduce((a, b) => a + b, 0) / numPacks;
        expect(heaviest).toBeLessThanOrEqual(mean + Math.max(...loads));
        if (loads.length <= 9) expect(heaviest).toBeLessThanOrEqual((4 / 3) * optimum(loads, numPacks) + 1e-9);
      }),
      { numRuns: 300 },
    );
  });

  test("ties go to the first: zero loads, equal loads, all load on one item", () => {
    expect(balancedPacks([0, 0, 0, 0], 2)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(balancedPacks([5, 5, 5, 5], 2)).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(balancedPacks([0, 0, 9, 0], 2)).toEqual([
      [2, 3],
      [0, 1],
    ]);
  });

  test("one item per pack stays, unless packs have initial loads", () => {
    expect(balancedPacks([1, 2, 3], 3)).toEqual([[0], [1], [2]]);
    expect(balancedPacks([1, 2, 3], 3, [0, 5, 9])).toEqual([[2], [1], [0]]);
  });
});
