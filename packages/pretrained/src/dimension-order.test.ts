import { evaluate, NdArray, referenceBackend, type Tensor, transpose } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { inverseOrder, reordered } from "./dimension-order.ts";

test("dimensions are reordered as by transpose, and back", async () => {
  const shapes = fc
    .array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 })
    .chain((shape) =>
      fc.tuple(fc.constant(shape), fc.shuffledSubarray([...shape.keys()], { minLength: shape.length })),
    );
  await fc.assert(
    fc.asyncProperty(shapes, async ([shape, order]) => {
      const array = normalArray(shape, 3);
      const there = reordered(array, order);
      const wanted = (await evaluate((x: Tensor) => transpose(x, order), referenceBackend())(array)) as NdArray;
      expect(there).toEqual(wanted);
      expect(reordered(there, inverseOrder(order))).toEqual(array);
    }),
    { numRuns: 60 },
  );
});

test("also for matrices of several tiles", () => {
  const [rows, columns] = [70, 33];
  const array = NdArray.from(
    Array.from({ length: rows * columns }, (_, i) => i),
    [rows, columns],
  );
  const there = reordered(array, [1, 0]);
  expect(there.shape).toEqual([columns, rows]);
  expect(there.data.every((value, i) => value === (i % rows) * columns + Math.floor(i / rows))).toBe(true);
});
