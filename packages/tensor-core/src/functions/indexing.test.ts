import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { vjp } from "../autodiff/vjp.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { full, multiply } from "./elementwise.ts";
import {
  compact,
  embedding,
  gather,
  invertPermutation,
  nonzero,
  permuteRows,
  scatterAdd,
  segmentSum,
} from "./indexing.ts";
import { sum } from "./reduce.ts";

const reference = referenceBackend();
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, reference)(...inputs)) as NdArray).toNumbers();
const integers = (values: readonly number[], shape: readonly number[] = [values.length]): NdArray =>
  NdArray.from(values, shape, "i32");

describe("gather and scatterAdd", () => {
  test("values written out by hand", async () => {
    const table = NdArray.from([1, 2, 3, 4, 5, 6], [3, 2]);
    expect(await run((x, i) => embedding(x!, i!), table, integers([2, 0, 2]))).toEqual([5, 6, 1, 2, 5, 6]);
    expect(await run((x, i) => gather(x!, i!, { dim: 1 }), table, integers([1, 1, 0]))).toEqual([
      2, 2, 1, 4, 4, 3, 6, 6, 5,
    ]);
    expect(await run((x, i) => embedding(x!, i!), table, integers([3, -1]))).toEqual([NaN, NaN, NaN, NaN]);
    expect(
      await run(
        (x, i, u) => scatterAdd(x!, i!, u!),
        NdArray.from([0, 0, 10]),
        integers([1, 1, 2, 3, -1]),
        NdArray.from([1, 2, 3, 4, 5]),
      ),
    ).toEqual([0, 3, 13]);
  });

  test("are adjoint: ⟨gather(x), u⟩ = ⟨x, scatterAdd(0, u)⟩, indices outside included", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: -2, max: 7 }), { minLength: 1, maxLength: 9 }),
        async (size, indices) => {
          const x = NdArray.from(
            Array.from({ length: size * 3 }, (_, i) => Math.sin(i + 1)),
            [size, 3],
          );
          const u = NdArray.from(
            Array.from({ length: indices.length * 3 }, (_, i) => Math.cos(2 * i)),
            [indices.length, 3],
          );
          const left = await run(
            (x, i, u) => sum(multiply(gather(x!, i!, { outside: "zero" }), u!)),
            x,
            integers(indices),
            u,
          );
          const right = await run(
            (x, i, u) => sum(multiply(x!, scatterAdd(full([size, 3], 0), i!, u!))),
            x,
            integers(indices),
            u,
          );
          expect(left[0]).toBeCloseTo(right[0]!, 5);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("name mismatched shapes", async () => {
    const x = NdArray.zeros("f32", [3, 2]);
    await expect(run((x, i) => gather(x!, i!), x, NdArray.zeros("f32", [2]))).rejects.toThrow(
      /indices are f32\[2\], but must be i32/,
    );
    await expect(run((x, i, u) => scatterAdd(x!, i!, u!), x, integers([0]), NdArray.zeros("f32", [2]))).rejects.toThrow(
      /updates f32\[2\] do not fit base f32\[3, 2\] with indices i32\[1\]; they must be f32\[1, 2\]/,
    );
  });
});

describe("segmentSum", () => {
  test("equals a loop, without rows out of range", async () => {
    const ids = fc.array(fc.integer({ min: -2, max: 6 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(ids, fc.nat(5), async (segments, count) => {
        const x = NdArray.from(
          Array.from({ length: segments.length * 2 }, (_, i) => i + 1),
          [segments.length, 2],
          "i32",
        );
        const sums = new Array<number>(count * 2).fill(0);
        segments.forEach((segment, row) => {
          if (segment < 0 || segment >= count) return;
          for (let j = 0; j < 2; j++) sums[segment * 2 + j]! += row * 2 + j + 1;
        });
        expect(await run((x, i) => segmentSum(x!, i!, count), x, integers(segments))).toEqual(sums);
      }),
      { numRuns: 100 },
    );
  });

  test("names mismatched shapes", async () => {
    const x = NdArray.zeros("f32", [3, 2]);
    await expect(run((x, i) => segmentSum(x!, i!, 2), x, integers([0, 1]))).rejects.toThrow(
      /i32\[2\] does not match the rows of f32\[3, 2\]; pass i32, one id per entry of dimension 0/,
    );
    await expect(run((x, i) => segmentSum(x!, i!, 2), x, NdArray.zeros("f32", [3]))).rejects.toThrow(
      /f32\[3\] does not match the rows/,
    );
    await expect(run((x, i) => segmentSum(x!, i!, -1), x, integers([0, 1, 1]))).rejects.toThrow(/segmentSum/);
  });
});

describe("permuteRows", () => {
  const permutations = fc.integer({ min: 1, max: 9 }).chain((size) =>
    fc.shuffledSubarray(
      Array.from({ length: size }, (_, i) => i),
      { minLength: size, maxLength: size },
    ),
  );
  const rows = (size: number, phase = 0): NdArray =>
    NdArray.from(
      Array.from({ length: 2 * size * 3 }, (_, i) => Math.sin(i + 1 + phase)),
      [2, size, 3],
    );
  /** Returns the function that computes the gradient of ⟨pick(x, p), u⟩ with respect to x. */
  const gradient =
    (pick: (x: Tensor, p: Tensor, options: { readonly dim: number }) => Tensor) =>
    (...[x, p, u]: Tensor[]): Tensor =>
      vjp((own: Tensor) => pick(own, p!, { dim: 1 }), x!).pullback(u!);

  test("and then the inverse is the identity, and so is the inverse of the inverse", async () => {
    await fc.assert(
      fc.asyncProperty(permutations, async (permutation) => {
        const x = rows(permutation.length);
        const p = integers(permutation);
        expect(
          await run((x, p) => permuteRows(permuteRows(x!, p!, { dim: 1 }), invertPermutation(p!), { dim: 1 }), x, p),
        ).toEqual(x.toNumbers());
        expect(await run((p) => invertPermutation(invertPermutation(p!)), p)).toEqual(permutation);
      }),
      { numRuns: 50 },
    );
  });

  test("has the values and the gradient of gather", async () => {
    await fc.assert(
      fc.asyncProperty(permutations, async (permutation) => {
        const args = [rows(permutation.length), integers(permutation), rows(permutation.length, 7)] as const;
        expect(await run((x, p) => permuteRows(x!, p!, { dim: 1 }), ...args)).toEqual(
          await run((x, p) => gather(x!, p!, { dim: 1 }), ...args),
        );
        expect(await run(gradient(permuteRows), ...args)).toEqual(await run(gradient(gather), ...args));
      }),
      { numRuns: 50 },
    );
  });

  test("adds no floats in the backward pass", () => {
    const args = [rows(4), integers([2, 0, 3, 1]), rows(4)] as const;
    const adders = (fn: (...inputs: Tensor[]) => Tensor): string[] =>
      trace(fn, args as never).graph.nodes.flatMap((node) => (node.op === "scatter-add" ? [node.specs[0]!.dtype] : []));
    expect(adders(gradient(permuteRows))).toEqual(["i32"]);
    expect(adders(gradient(gather))).toEqual(["f32"]);
  });

  test("has NaN in the gradient for an invalid permutation", async () => {
    const args = [rows(4), integers([2, 0, 2, 1]), rows(4)] as const;
    expect((await run(gradient(permuteRows), ...args)).some(Number.isNaN)).toBe(true);
  });

  test("names mismatched shapes", async () => {
    await expect(run((x, p) => permuteRows(x!, p!), rows(4), integers([0, 1, 2]))).rejects.toThrow(
      /i32\[3\] does not permute the 2 entries of dimension 0 of f32\[2, 4, 3\]; name each entry once/,
    );
  });
});

describe("nonzero", () => {
  test("equals a loop, cut off at the capacity and padded with zeros", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 40 }), fc.nat(45), async (bools, capacity) => {
        const mask = NdArray.from(
          bools.map((bool) => (bool ? 1 : 0)),
          [bools.length],
          "bool",
        );
        const found = bools.flatMap((bool, i) => (bool ? [i] : [])).slice(0, capacity);
        const padded = [...found, ...new Array<number>(capacity - found.length).fill(0)];
        expect(await run((own) => nonzero(own!, capacity).indices, mask)).toEqual(padded);
        expect(await run((own) => nonzero(own!, capacity).count, mask)).toEqual([found.length]);
      }),
      { numRuns: 100 },
    );
  });

  test("names mismatched shapes", async () => {
    await expect(run((x) => nonzero(x!, 3).count, NdArray.from([1, 0]))).rejects.toThrow(
      /got f32\[2\], expected bool \[n\]/,
    );
    await expect(run((x) => nonzero(x!, 3).count, NdArray.zeros("bool", [2, 2]))).rejects.toThrow(
      /expected bool \[n\]/,
    );
    await expect(run((x) => nonzero(x!, -1).count, NdArray.zeros("bool", [2]))).rejects.toThrow(
      /capacity -1 is not a size/,
    );
  });
});

describe("compact", () => {
  const value = fc.oneof(fc.constantFrom(0, -0, 1, -1, NaN, Infinity, -Infinity, 1e-40), fc.float());

  test("equals a loop, cut off at the capacity and padded with zeros", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(value, { maxLength: 40 }), value, fc.nat(45), async (numbers, bound, capacity) => {
        const x = NdArray.from(numbers);
        const own = x.toNumbers();
        const least = Number.isNaN(bound) ? Infinity : Math.abs(Math.fround(bound));
        const reaching = own.flatMap((v, i) => (v !== 0 && !(Math.abs(v) < least) ? [i] : []));
        const found = reaching.slice(0, capacity);
        const behind = new Array<number>(capacity - found.length).fill(0);
        const get = (name: "values" | "indices" | "count" | "greatest"): Promise<number[]> =>
          run((flat, edge) => compact(flat!, edge!, capacity)[name], x, NdArray.scalar(bound));
        expect(await get("values")).toEqual([...found.map((i) => own[i]), ...behind]);
        expect(await get("indices")).toEqual([...found, ...behind]);
        expect(await get("count")).toEqual([reaching.length]);
        expect(await get("greatest")).toEqual([Math.max(0, ...own.map(Math.abs))]);
      }),
      { numRuns: 100 },
    );
  });

  test("names mismatched shapes", async () => {
    const one = NdArray.scalar(1);
    await expect(run((x, b) => compact(x!, b!, 3).count, NdArray.zeros("i32", [2]), one)).rejects.toThrow(
      /got i32\[2\], expected f32 \[n\]/,
    );
    await expect(run((x) => compact(x!, x!, 3).count, NdArray.from([1, 0]))).rejects.toThrow(
      /the bound must be an f32 scalar, got f32\[2\]/,
    );
    await expect(run((x, b) => compact(x!, b!, -1).count, NdArray.from([1]), one)).rejects.toThrow(
      /capacity -1 is not a size/,
    );
  });
});
