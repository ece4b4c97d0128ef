import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { groupRanges } from "../ops/shared/grouped-rows.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { zeros } from "./elementwise.ts";
import { groupedMatmul } from "./grouped-matmul.ts";
import { matmul } from "./linear.ts";
import { concat, reshape, slice } from "./movement.ts";

const wave = (shape: readonly number[], seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => Math.sin((i + 1) * seed)),
    shape,
  );
const integers = (values: readonly number[]): NdArray => NdArray.from(values, [values.length], "i32");
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, referenceBackend())(...inputs)) as NdArray).toNumbers();

const anyCount = fc.oneof(fc.nat(5), fc.constantFrom(-1, -(2 ** 31), 2 ** 31 - 1));

describe("groupedMatmul", () => {
  test("rows are assigned in order, each at most once", () => {
    fc.assert(
      fc.property(fc.array(anyCount, { maxLength: 6 }), fc.nat(12), (counts, rows) => {
        let next = 0;
        groupRanges(counts, rows).forEach(({ begin, end }, group) => {
          expect(begin).toBe(next);
          expect(end - begin).toBe(Math.min(Math.max(counts[group]!, 0), rows - begin));
          next = end;
        });
        expect(next).toBe(
          Math.min(
            rows,
            counts.reduce((sum, count) => sum + Math.max(count, 0), 0),
          ),
        );
      }),
    );
  });

  test("is one product per group, in order, followed by zeros", async () => {
    const countLists = fc.array(fc.nat(4), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(countLists, fc.nat(3), async (counts, behind) => {
        const used = counts.reduce((sum, count) => sum + count, 0);
        const [x, w] = [wave([used + behind, 3], 1.3), wave([counts.length, 3, 2], 0.7)];
        const separate = (x?: Tensor, w?: Tensor): Tensor => {
          let begin = 0;
          const products = counts.map((count, group) => {
            begin += count;
            return matmul(slice(x!, [begin - count], [begin]), reshape(slice(w!, [group], [group + 1]), [3, 2]));
          });
          return concat([...products, zeros([behind, 2])]);
        };
        expect(await run((x, w, c) => groupedMatmul(x!, w!, c!), x, w, integers(counts))).toEqual(
          await run(separate, x, w),
        );
      }),
      { numRuns: 60 },
    );
  });

  test("names mismatched shapes", async () => {
    const [x, w, c] = [wave([4, 3], 1), wave([2, 3, 5], 2), integers([1, 3])];
    const grouped = (x?: Tensor, w?: Tensor, c?: Tensor): Tensor => groupedMatmul(x!, w!, c!);
    await expect(run(grouped, wave([4, 2], 1), w, c)).rejects.toThrow(
      /f32\[4, 2\] and f32\[2, 3, 5\] do not fit: rows have width 2, but matrices need width 3/,
    );
    await expect(run(grouped, x, w, integers([4]))).rejects.toThrow(/counts are i32\[1\], but 2 groups need i32\[2\]/);
    await expect(run(grouped, x, w, wave([2], 1))).rejects.toThrow(/counts are f32\[2\]/);
    await expect(run(grouped, x, wave([3, 5], 1), c)).rejects.toThrow(
      /weights are f32\[3, 5\], expected f32 of rank 3/,
    );
    await expect(run(grouped, wave([4], 1), w, c)).rejects.toThrow(/got f32\[4\], expected f32 \[rows, width\]/);
  });
});
