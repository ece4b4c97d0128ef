import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxAlive, packIntervals } from "./pack-intervals.ts";

const intervals = fc.array(
  fc
    .record({ bytes: fc.nat(500), begin: fc.nat(20), length: fc.nat(8) })
    .map(({ bytes, begin, length }) => ({ bytes, begin, end: begin + length })),
  { maxLength: 30 },
);

const bytesOf = (slabBytes: readonly number[]): number => slabBytes.reduce((sum, bytes) => sum + bytes, 0);

describe("packIntervals", () => {
  it("does not overlap live intervals, aligns, and respects the limits", () => {
    fc.assert(
      fc.property(
        intervals,
        fc.constantFrom(1, 16, 64),
        fc.constantFrom(Infinity, 1024),
        (all, alignment, maxSlabBytes) => {
          const { slabs, offsets, slabBytes } = packIntervals(all, alignment, maxSlabBytes);
          for (const size of slabBytes) expect(size).toBeLessThanOrEqual(maxSlabBytes);
          all.forEach((a, i) => {
            expect(offsets[i]! % alignment).toBe(0);
            expect(offsets[i]! + a.bytes).toBeLessThanOrEqual(slabBytes[slabs[i]!]!);
            all.slice(i + 1).forEach((b, rest) => {
              const j = i + 1 + rest;
              const together =
                slabs[i] === slabs[j] && a.begin <= b.end && b.begin <= a.end && a.bytes > 0 && b.bytes > 0;
              if (together)
                expect(offsets[i]! + a.bytes <= offsets[j]! || offsets[j]! + b.bytes <= offsets[i]!).toBe(true);
            });
          });
          expect(bytesOf(slabBytes)).toBeGreaterThanOrEqual(maxAlive(all, alignment));
        },
      ),
    );
  });

  it("reuses memory: a chain needs memory for two values", () => {
    const chain = Array.from({ length: 10 }, (_, i) => ({ bytes: 64, begin: i, end: i + 1 }));
    expect(packIntervals(chain, 64).slabBytes).toEqual([128]);
    expect(maxAlive(chain, 64)).toBe(128);
  });

  it("gives an interval larger than a slab its own slab", () => {
    const all = [100, 300, 100].map((bytes) => ({ bytes, begin: 0, end: 1 }));
    expect(packIntervals(all, 1, 200)).toMatchObject({ slabs: [1, 0, 1], slabBytes: [300, 200] });
  });

  it("is within a tenth of the lower bound on average", () => {
    let [used, bound] = [0, 0];
    for (const all of fc.sample(intervals, { numRuns: 200, seed: 7 })) {
      used += bytesOf(packIntervals(all, 1).slabBytes);
      bound += maxAlive(all, 1);
    }
    expect(used / bound).toBeLessThan(1.1);
  });
});
