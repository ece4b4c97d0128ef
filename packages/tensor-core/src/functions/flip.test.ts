import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { elementCount, type Shape } from "../shape.ts";
import { flip } from "./flip.ts";
import { concat, split } from "./movement.ts";
import { roll } from "./roll.ts";
import { tril, triu } from "./triangular.ts";
import { add } from "./elementwise.ts";

const run = async (fn: (x: Tensor) => Tensor, x: NdArray): Promise<number[]> =>
  ((await evaluate(fn, referenceBackend())(x)) as NdArray).toNumbers();
const counted = (shape: Shape): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => i + 1),
    shape,
  );
const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 });
const placed = shapes.chain((shape) => fc.record({ shape: fc.constant(shape), dim: fc.nat(shape.length - 1) }));

describe("flip", () => {
  test("written out by hand", async () => {
    expect(await run((x) => flip(x, { dims: 1 }), counted([2, 3]))).toEqual([3, 2, 1, 6, 5, 4]);
    expect(await run((x) => flip(x), counted([2, 3]))).toEqual([6, 5, 4, 3, 2, 1]);
    expect(await run((x) => flip(x, { dims: [] }), counted([3]))).toEqual([1, 2, 3]);
    expect(await run((x) => flip(x), counted([]))).toEqual([1]);
  });

  test("is an involution, reverses parts with the whole, and is its own gradient", async () => {
    await fc.assert(
      fc.asyncProperty(placed, fc.nat(4), async ({ shape, dim }, cut) => {
        const x = counted(shape);
        expect(await run((own) => flip(flip(own, { dims: dim }), { dims: dim }), x)).toEqual(x.toNumbers());
        const first = Math.min(cut, shape[dim]!);
        const parts = (own: Tensor): Tensor[] => split(own, [first, shape[dim]! - first], { dim });
        const whole = await run((own) => flip(own, { dims: dim }), x);
        const turned = (own: Tensor): Tensor[] => parts(own).map((part) => flip(part, { dims: dim }));
        expect(await run((own) => concat(turned(own).reverse(), { dim }), x)).toEqual(whole);
        expect(await run((own) => vjp((y: Tensor) => flip(y, { dims: dim }), own).pullback(own), x)).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  test("rejects dimensions that do not exist, and a number instead of options", async () => {
    await expect(run((x) => flip(x, { dims: 2 }), counted([2, 3]))).rejects.toThrow(ShapeError);
    await expect(run((x) => flip(x, 0 as never), counted([2, 3]))).rejects.toThrow(/flip\(x, \{ dims: 0 \}\)/);
  });
});

describe("roll", () => {
  test("written out by hand", async () => {
    expect(await run((x) => roll(x, 1, { dim: 0 }), counted([4]))).toEqual([4, 1, 2, 3]);
    expect(await run((x) => roll(x, -1, { dim: 1 }), counted([2, 3]))).toEqual([2, 3, 1, 5, 6, 4]);
  });

  test("is the identity for the size as shift; shifts add up", async () => {
    const shifts = fc.integer({ min: -9, max: 9 });
    await fc.assert(
      fc.asyncProperty(placed, shifts, shifts, async ({ shape, dim }, a, b) => {
        const x = counted(shape);
        expect(await run((own) => roll(own, shape[dim]!, { dim }), x)).toEqual(x.toNumbers());
        expect(await run((own) => roll(roll(own, a, { dim }), b, { dim }), x)).toEqual(
          await run((own) => roll(own, a + b, { dim }), x),
        );
      }),
      { numRuns: 60 },
    );
  });

  test("rejects a shift that is not a whole number, and a missing dimension", async () => {
    await expect(run((x) => roll(x, 0.5, { dim: 0 }), counted([4]))).rejects.toThrow(
      /a shift of 0\.5 is not a whole number/,
    );
    const forgotten = roll as unknown as (x: Tensor, shift: number, options?: unknown) => Tensor;
    await expect(run((x) => forgotten(x, 2), counted([4]))).rejects.toThrow(/pass one: roll\(x, 2, \{ dim: 0 \}\)/);
    await expect(run((x) => forgotten(x, 2, 0), counted([4]))).rejects.toThrow(ArgumentError);
    await expect(run((x) => forgotten(x, 2, {}), counted([4]))).rejects.toThrow(ShapeError);
  });
});

describe("triangles", () => {
  test("written out by hand", async () => {
    expect(await run((x) => tril(x), counted([2, 3]))).toEqual([1, 0, 0, 4, 5, 0]);
    expect(await run((x) => triu(x, { diagonal: 1 }), counted([3, 3]))).toEqual([0, 2, 3, 0, 0, 6, 0, 0, 0]);
    expect(await run((x) => tril(x), NdArray.from([1, NaN, Infinity, 2], [2, 2]))).toEqual([1, 0, Infinity, 2]);
  });

  test("the lower triangle and the entries above add up to the whole", async () => {
    const matrices = fc.tuple(fc.nat(2), fc.nat(4), fc.nat(4));
    await fc.assert(
      fc.asyncProperty(matrices, fc.integer({ min: -5, max: 5 }), async (shape, diagonal) => {
        const x = counted(shape);
        expect(await run((own) => add(tril(own, { diagonal }), triu(own, { diagonal: diagonal + 1 })), x)).toEqual(
          x.toNumbers(),
        );
      }),
      { numRuns: 40 },
    );
  });

  test("rejects vectors and half diagonals", async () => {
    await expect(run((x) => tril(x), counted([3]))).rejects.toThrow(
      /tril: takes matrices \[\.\.\., rows, columns\], got f32\[3\]/,
    );
    await expect(run((x) => triu(x, { diagonal: 0.5 }), counted([3, 3]))).rejects.toThrow(/diagonal 0\.5/);
    await expect(run((x) => triu(x, 1 as never), counted([3, 3]))).rejects.toThrow(/triu\(x, \{ diagonal: 1 \}\)/);
  });
});
