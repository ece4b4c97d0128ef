import { evaluate, matmul, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newtonSchulz } from "./newton-schulz.ts";

const run = async (rows: readonly (readonly number[])[], steps = 5): Promise<number[][]> => {
  const result = await evaluate((x: Tensor) => newtonSchulz(x, { steps }), referenceBackend())(NdArray.from(rows));
  const flat = result.toNumbers();
  return rows.map((row, i) => flat.slice(i * row.length, (i + 1) * row.length));
};

describe("newtonSchulz", () => {
  // Computed in exact arithmetic: singular values after five steps. A value below 1 gets a second value that makes the
  // norm 1, so that dividing by the norm changes nothing.
  test.each([
    [0.001, 0.4705],
    [0.01, 0.6989],
    [0.05, 0.7581],
    [0.1, 0.7121],
    [0.3, 1.0796],
    [0.5, 0.7654],
    [0.8, 1.1192],
    [1, 0.6964],
  ])("maps the singular value %d to %d", async (before, after) => {
    const rows = [
      [before, 0],
      [0, Math.sqrt(1 - before ** 2)],
    ];
    expect((await run(rows))[0]![0]).toBeCloseTo(after, 4);
  });

  test("keeps singular vectors and does not depend on scale, for wide and tall matrices", async () => {
    const entry = fc.double({ min: -1, max: 1, noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(entry, { minLength: 12, maxLength: 12 }),
        fc.integer({ min: -20, max: 20 }),
        async (values, exponent) => {
          const wide = [0, 1, 2].map((i) => values.slice(4 * i, 4 * i + 4).map((v, j) => v + (i === j ? 2 : 0)));
          const [result, scaled] = [await run(wide), await run(wide.map((row) => row.map((v) => v * 2 ** exponent)))];
          result.flat().forEach((value, i) => expect(scaled.flat()[i]).toBeCloseTo(value, 5));
          const tall = await run(wide[0]!.map((_, j) => wide.map((row) => row[j]!)));
          result.forEach((row, i) => row.forEach((value, j) => expect(tall[j]![i]).toBeCloseTo(value, 5)));
          // U p(S) Vᵀ · (U S Vᵀ)ᵀ = U p(S) S Uᵀ is symmetric only for the right singular vectors.
          const product = (
            await evaluate((a: Tensor, b: Tensor) => matmul(a, b, { transposeB: true }), referenceBackend())(
              NdArray.from(result),
              NdArray.from(wide),
            )
          ).toNumbers();
          for (const i of [0, 1, 2])
            for (const j of [0, 1, 2]) expect(product[3 * i + j]).toBeCloseTo(product[3 * j + i]!, 5);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("gives the same singular values for long matrices, which use only the Gram matrix", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 2, maxLength: 2 }),
        fc.constantFrom(1, 2, 5, 7),
        fc.integer({ min: 3, max: 9 }),
        async ([x, y], steps, length) => {
          // Two columns plus a zero column: the singular values of the long rows [p, q, 0, …] equal those of [p, q].
          const short = [
            [2 + x!, y!],
            [y!, 1.5 - x!],
          ];
          const long = short.map((row) => [...row, ...Array.from({ length }, () => 0)]);
          const [expected, got] = [await run(short, steps), await run(long, steps)];
          got.forEach((row, i) => row.forEach((value, j) => expect(value).toBeCloseTo(expected[i]![j] ?? 0, 4)));
        },
      ),
      { numRuns: 30 },
    );
  });

  test("is bounded for long matrices of low rank, and with tiny singular values", async () => {
    const long = (scale: number): number[][] => [
      [3, 0, 4, 0, 0, 0, 0, 0],
      [3 * scale, 0, 4 * scale, 0, scale, 0, 0, 0],
    ];
    for (const scale of [0, 1e-7, 1e-5, 1e-3, 1e-1]) {
      const rows = await run(long(scale));
      for (const row of rows) expect(Math.hypot(...row)).toBeLessThan(1.3);
      expect(Math.hypot(...rows[0]!)).toBeGreaterThan(0.6);
    }
  });

  test("does not change zeros", async () => {
    expect(await run([[0, 0, 0]])).toEqual([[0, 0, 0]]);
  });

  test("rejects invalid arguments", async () => {
    const refused = (fn: () => Promise<unknown>): Promise<string> =>
      fn().then(
        () => "not refused",
        (error: Error) => error.message,
      );
    const vector = (x: Tensor): Tensor => newtonSchulz(x);
    expect(await refused(() => evaluate(vector, referenceBackend())(NdArray.from([1, 2])))).toMatch(
      /\[2\] is not a matrix/,
    );
    expect(await refused(() => run([[1]], 0))).toMatch(/steps is 0.*from 1/);
  });
});
