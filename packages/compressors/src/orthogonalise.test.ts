import { NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runSingle } from "../test/single-precision.ts";
import { orthogonalise } from "./orthogonalise.ts";

type Matrix = readonly (readonly number[])[];

const rowsOf = (flat: readonly number[], r: number): number[][] =>
  Array.from({ length: flat.length / r }, (_, i) => flat.slice(i * r, (i + 1) * r));
const orthogonal = (p: Matrix): number[][] => {
  const [q] = runSingle((x: Tensor) => orthogonalise(x), [[NdArray.from(p.flat(), [p.length, p[0]!.length])]]);
  return rowsOf(q!.toNumbers(), p[0]!.length);
};
const randomMatrix = (n: number, r: number, seed: number): number[][] =>
  rowsOf(normalArray([n, r], seed).toNumbers(), r);
const times = (a: Matrix, b: Matrix): number[][] =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, v, k) => sum + v * b[k]![j]!, 0)));
const transposed = (a: Matrix): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));
const norm = (a: Matrix): number => Math.hypot(...a.flat());
const minus = (a: Matrix, b: Matrix): number[][] => a.map((row, i) => row.map((v, j) => v - b[i]![j]!));

/** Returns the distance of QᵀQ from the identity matrix. */
const skewness = (q: Matrix): number => {
  const gram = times(transposed(q), q);
  return norm(gram.map((row, i) => row.map((v, j) => v - (i === j ? 1 : 0))));
};
/** Returns the norm of the part of P outside the column space of Q, relative to the norm of P. */
const outside = (p: Matrix, q: Matrix): number => norm(minus(p, times(q, times(transposed(q), p)))) / (norm(p) || 1);
const greatestStretch = (q: Matrix, seed: number): number => {
  let x: Matrix = randomMatrix(q[0]!.length, 1, seed);
  for (let i = 0; i < 30; i++) {
    const y = times(transposed(q), times(q, x));
    const length = norm(y) || 1;
    x = y.map((row) => row.map((v) => v / length));
  }
  return norm(times(q, x)) / (norm(x) || 1);
};

const sizes = fc
  .integer({ min: 1, max: 6 })
  .chain((r) => fc.record({ r: fc.constant(r), n: fc.integer({ min: r, max: 24 }), seed: fc.nat(1e6) }));

describe("orthogonalise", () => {
  it("makes columns orthonormal and keeps their span, for any sizes", () => {
    const sized = fc.tuple(sizes, fc.array(fc.constantFrom(1e-30, 1e-5, 1, 1e30), { minLength: 6, maxLength: 6 }));
    fc.assert(
      fc.property(sized, ([{ n, r, seed }, scales]) => {
        const p = randomMatrix(n + 4, r, seed);
        const q = orthogonal(p.map((row) => row.map((v, j) => Math.fround(v * scales[j]!))));
        expect(skewness(q)).toBeLessThan(1e-5);
        expect(outside(p, q)).toBeLessThan(1e-5);
      }),
      { seed: 1 },
    );
  });

  it("makes nearly parallel columns orthonormal", () => {
    const [n, r] = [40, 4];
    const [common, own] = [randomMatrix(n, 1, 1), randomMatrix(n, r, 2)];
    const q = orthogonal(own.map((row, i) => row.map((v) => Math.fround(common[i]![0]! + 1e-4 * v))));
    expect(skewness(q)).toBeLessThan(1e-3);
    expect(greatestStretch(q, 3)).toBeLessThan(1 + 1e-5);
  });

  it("handles rank deficiency: loses nothing, stretches nothing, creates no NaN", () => {
    const lower = sizes.chain((own) => fc.record({ size: fc.constant(own), rank: fc.integer({ min: 0, max: own.r }) }));
    fc.assert(
      fc.property(lower, ({ size: { n, r, seed }, rank }) => {
        const p =
          rank === 0
            ? randomMatrix(n, r, seed).map((row) => row.map(() => 0))
            : times(randomMatrix(n, rank, seed), randomMatrix(rank, r, seed + 1)).map((row) => row.map(Math.fround));
        const q = orthogonal(p);
        expect(q.flat().every(Number.isFinite)).toBe(true);
        expect(outside(p, q)).toBeLessThan(1e-5);
        expect(greatestStretch(q, seed)).toBeLessThan(1 + 1e-5);
      }),
      { seed: 1 },
    );
  });

  it("keeps zeros and counts equal columns once", () => {
    expect(
      orthogonal([
        [0, 0],
        [0, 0],
        [0, 0],
      ]),
    ).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    const withZero = orthogonal([
      [3, 0],
      [4, 0],
    ]);
    expect(withZero[0]![0]).toBeCloseTo(0.6, 6);
    expect(withZero.map((row) => row[1])).toEqual([0, 0]);
    const equal = orthogonal([
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
    equal.forEach((row) => expect(row[0]! ** 2 + row[1]! ** 2).toBeCloseTo(1 / 4, 5));
    expect(orthogonal([[-7]])).toEqual([[-1]]);
  });

  it("handles matrices of equal shape together, each independently", () => {
    const both = [randomMatrix(5, 2, 1), randomMatrix(5, 2, 2).map((row) => row.map((v) => v * 1e10))];
    const [together] = runSingle((x: Tensor) => orthogonalise(x), [[NdArray.from(both.flat(2), [2, 5, 2])]]);
    expect(together!.toNumbers()).toEqual(both.flatMap((own) => orthogonal(own).flat()));
  });

  it("returns NaN for non-finite input, and rejects more columns than rows", () => {
    for (const value of [NaN, Infinity, -Infinity])
      expect(
        orthogonal([
          [1, 2],
          [value, 3],
          [1, 1],
        ])
          .flat()
          .some(Number.isFinite),
      ).toBe(false);
    expect(() => orthogonal([[1, 2]])).toThrow(/\[1, 2\] has no 2 orthonormal columns/);
  });
});
