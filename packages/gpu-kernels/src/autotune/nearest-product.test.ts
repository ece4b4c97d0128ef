import fc from "fast-check";
import { expect, test } from "vitest";
import type { MatmulRequest } from "../kernel.ts";
import { nearestProduct } from "./nearest-product.ts";

const product = (
  rows: number,
  columns: number,
  inner: number,
  other: Partial<MatmulRequest> = {},
): { readonly request: MatmulRequest } => ({
  request: { batch: 1, rows, columns, inner, transposeA: false, transposeB: false, dtype: "f32", ...other },
});

test("measures distance by ratios of sizes, not differences", () => {
  const [small, large] = [product(8, 64, 64), product(512, 64, 64)];
  expect(nearestProduct([small, large], product(48, 64, 64).request)).toBe(small);
  expect(nearestProduct([small, large], product(96, 64, 64).request)).toBe(large);
});

test("prefers a product of the same layout and dtype to a product of the same sizes; otherwise the fewest differences", () => {
  const far = product(2048, 2048, 2048);
  const near = product(64, 64, 64, { transposeB: true });
  const half = product(64, 64, 64, { transposeB: true, dtype: "f16" });
  expect(nearestProduct([half, near, far], product(64, 64, 64).request)).toBe(far);
  expect(nearestProduct([half, far, near], product(64, 64, 64, { transposeA: true, transposeB: true }).request)).toBe(
    near,
  );
  expect(nearestProduct([], far.request)).toBeUndefined();
});

test("treats sizes of zero like sizes of one", () => {
  const [one, two] = [product(1, 1, 1), product(2, 2, 2)];
  expect(nearestProduct([two, one], product(0, 1, 1).request)).toBe(one);
});

const size = fc.integer({ min: 0, max: 4096 });
const request = fc.record<MatmulRequest>({
  batch: size,
  rows: size,
  columns: size,
  inner: size,
  transposeA: fc.boolean(),
  transposeB: fc.boolean(),
  dtype: fc.constantFrom("f32", "f16"),
});

test("finds a measured product itself, whatever else was measured", () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 20 }), request, (others, own) => {
      const { request: found } = nearestProduct(
        [...others, own].map((each) => ({ request: each })),
        own,
      )!;
      const clamped = ({ batch, rows, columns, inner, ...rest }: MatmulRequest): object => ({
        ...rest,
        sizes: [batch, rows, columns, inner].map((value) => Math.max(1, value)),
      });
      expect(clamped(found)).toEqual(clamped(own));
    }),
  );
});
