import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { holdOutByName } from "./hold-out-by-name.ts";

const item = fc.record({ label: fc.nat(4), hash: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }) });
const items = fc.array(item, { minLength: 1, maxLength: 120 });
const fractions = fc.double({ min: 0.01, max: 0.99, noNaN: true });
const numRuns = examples(200, 5000);

test("held-out items are in proportion to the classes, never a whole class, and at least one", () => {
  fc.assert(
    fc.property(items, fractions, (all, fraction) => {
      const isHeldOut = holdOutByName(all, fraction);
      const classes = Map.groupBy(
        all.map(({ label }, i) => ({ label, held: isHeldOut[i]! })),
        ({ label }) => label,
      );
      for (const ofClass of classes.values()) {
        const [count, held] = [ofClass.length, ofClass.filter((one) => one.held).length];
        const deviation = Math.sqrt(count * fraction * (1 - fraction));
        expect(Math.abs(held - count * fraction)).toBeLessThanOrEqual(Math.max(1, deviation) + 1e-9);
        expect(held).toBeLessThan(count);
        if (count * fraction >= 1 && count > 1) expect(held).toBeGreaterThan(0);
      }
      expect(isHeldOut.includes(true)).toBe([...classes.values()].some(({ length }) => length > 1));
    }),
    { numRuns },
  );
});

test("the items of a class with the smallest hashes are held out, in any order of the items", () => {
  fc.assert(
    fc.property(items, fractions, (all, fraction) => {
      const isHeldOut = holdOutByName(all, fraction);
      for (const [i, one] of all.entries())
        for (const [j, other] of all.entries())
          if (one.label === other.label && isHeldOut[i] && !isHeldOut[j])
            expect(one.hash).toBeLessThanOrEqual(other.hash);
      expect(holdOutByName(all.toReversed(), fraction).filter(Boolean)).toHaveLength(isHeldOut.filter(Boolean).length);
    }),
    { numRuns: Math.ceil(numRuns / 4) },
  );
});

test("a new item does not change other classes, and moves at most one other item of its own class", () => {
  let [numTries, numUnmoved] = [0, 0];
  fc.assert(
    fc.property(items, item, fractions, (all, added, fraction) => {
      fc.pre(all.filter(({ label }) => label === all[0]!.label).length * fraction >= 1 && all.length > 1);
      const [before, after] = [holdOutByName(all, fraction), holdOutByName([...all, added], fraction)];
      fc.pre(before.filter(Boolean).length > 1);
      const moved = all.filter((_, i) => before[i] !== after[i]);
      expect(moved.length).toBeLessThanOrEqual(1);
      expect(moved.every(({ label }) => label === added.label)).toBe(true);
      numTries++;
      if (moved.length === 0) numUnmoved++;
    }),
    { numRuns, examples: [[Array.from({ length: 20 }, () => ({ label: 0, hash: 0 })), { label: 1, hash: 0 }, 0.5]] },
  );
  expect(numUnmoved / numTries).toBeGreaterThan(0.5);
});
