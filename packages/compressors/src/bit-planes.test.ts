import { cast, NdArray, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import { addPlanes, constantPlanes, packPlanes, planesFor, unpackPlanes } from "./bit-planes.ts";

const numbersUpTo = (most: number, length: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 0, max: most }), { minLength: length, maxLength: length });

describe("bit planes", () => {
  it("pack integers of any width into as many bits as needed", () => {
    expect([0, 1, 2, 3, 4, 14, 16, 254, 256].map(planesFor)).toEqual([0, 1, 2, 2, 3, 4, 5, 8, 9]);
    const arbitrary = fc.tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 70 }));
    fc.assert(
      fc.property(
        arbitrary.chain(([most, n]) => fc.tuple(fc.constant(most), numbersUpTo(most, n))),
        ([most, numbers]) => {
          const there = (x: Tensor): Tensor => unpackPlanes(packPlanes(cast(x, "u32"), most), numbers.length);
          expect(runWorld(there, [[NdArray.from(numbers)]])[0]!.toNumbers()).toEqual(numbers);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("add like integers", () => {
    const arbitrary = fc.tuple(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 }),
    );
    fc.assert(
      fc.property(
        arbitrary.chain(([most, n, count]) =>
          fc.tuple(
            fc.constant(most),
            fc.integer({ min: 1, max: 20 }),
            fc.array(numbersUpTo(most, n), { minLength: count, maxLength: count }),
          ),
        ),
        ([most, start, terms]) => {
          const n = terms[0]!.length;
          const total = (...own: Tensor[]): Tensor => {
            const planes = own.map((x) => packPlanes(cast(x, "u32"), most));
            return unpackPlanes(
              addPlanes([constantPlanes(start, [Math.ceil(n / 32)]), ...planes], start + own.length * most),
              n,
            );
          };
          const sums = Array.from({ length: n }, (_, i) => terms.reduce((sum, term) => sum + term[i]!, start));
          expect(runWorld(total, [terms.map((term) => NdArray.from(term))])[0]!.toNumbers()).toEqual(sums);
        },
      ),
      { numRuns: 50 },
    );
  });
});
