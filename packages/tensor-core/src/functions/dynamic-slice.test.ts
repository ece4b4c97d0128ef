import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { planMemory } from "../memory/memory-plan.ts";
import { NdArray } from "../nd-array.ts";
import { optimize } from "../passes/optimize.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { dynamicSlice, dynamicUpdateSlice } from "./dynamic-slice.ts";
import { slice } from "./movement.ts";

const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, referenceBackend())(...inputs)) as NdArray).toNumbers();

const counting = (shape: readonly number[], from = 0): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => from + i),
    shape,
  );
const integers = (values: readonly number[]): NdArray => NdArray.from(values, [values.length], "i32");

/** Generates the shape of a tensor, the sizes of a window that fits into the tensor, and arbitrary starts. */
const windows = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.nat(4), fc.integer({ min: -7, max: 9 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((dims) => ({
    shape: dims.map(([size]) => size),
    sizes: dims.map(([size, less]) => Math.max(1, size - less)),
    starts: dims.map(([, , start]) => start),
  }));

describe("dynamicSlice and dynamicUpdateSlice", () => {
  test("clamp the start so that the window is inside", async () => {
    await fc.assert(
      fc.asyncProperty(windows, async ({ shape, sizes, starts }) => {
        const x = counting(shape);
        const clamped = starts.map((start, dim) => (start < 0 ? 0 : Math.min(start, shape[dim]! - sizes[dim]!)));
        const ends = clamped.map((start, dim) => start + sizes[dim]!);
        expect(await run((x, at) => dynamicSlice(x!, at!, sizes), x, integers(starts))).toEqual(
          await run((x) => slice(x!, clamped, ends), x),
        );
      }),
      { numRuns: 100 },
    );
  });

  test("read back what was written, and change nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(windows, async ({ shape, sizes, starts }) => {
        const [x, update, at] = [counting(shape), counting(sizes, 1000), integers(starts)];
        const written = (x?: Tensor, u?: Tensor, at?: Tensor): Tensor => dynamicUpdateSlice(x!, u!, at!);
        expect(await run((x, u, at) => dynamicSlice(written(x, u, at), at!, sizes), x, update, at)).toEqual(
          update.toNumbers(),
        );
        expect(
          await run(
            (x, u, at) => dynamicUpdateSlice(written(x, u, at), dynamicSlice(x!, at!, sizes), at!),
            x,
            update,
            at,
          ),
        ).toEqual(x.toNumbers());
        const others = (await run(written, x, update, at)).filter((value) => value < 1000);
        expect(others).toHaveLength(x.toNumbers().length - update.toNumbers().length);
      }),
      { numRuns: 100 },
    );
  });

  test("take starts as numbers and scalars, too", async () => {
    const x = counting([4, 5]);
    expect(await run((own, row) => dynamicSlice(own!, [row!, 3], [1, 2]), x, NdArray.scalar(2, "i32"))).toEqual([
      13, 14,
    ]);
    expect(await run((own) => dynamicSlice(own!, [2, 3], [1, 2]), x)).toEqual([13, 14]);
  });

  test("write a donated cache in place, and copy a kept one", () => {
    const specs = [counting([8, 4]), counting([1, 4]), integers([5, 0])];
    const { graph } = trace((cache: Tensor, u: Tensor, at: Tensor) => dynamicUpdateSlice(cache, u, at), specs as never);
    const placeOf = (donate: number[]): string => {
      const { region, index } = planMemory(graph, { donate }).outputs[0]!;
      return `${region} ${index}`;
    };
    expect(placeOf([0])).toBe("input 0");
    expect(placeOf([1])).toBe("output 0");
  });

  test("a full-size window costs nothing", () => {
    const specs = [counting([3, 4]), counting([3, 4]), integers([1, 1])];
    const { graph } = trace(
      (x: Tensor, u: Tensor, at: Tensor) => [dynamicSlice(x, at, [3, 4]), dynamicUpdateSlice(x, u, at)],
      specs as never,
    );
    expect(optimize(graph).nodes.map(({ op }) => op)).toEqual(["input", "input", "input"]);
  });

  test("name mismatched shapes", async () => {
    const x = counting([4, 5]);
    await expect(run((x) => dynamicSlice(x!, [1], [1, 2]), x)).rejects.toThrow(
      /dynamicSlice: starts are i32\[1\], but f32\[4, 5\] needs i32\[2\]: one start per dimension/,
    );
    await expect(run((x, at) => dynamicSlice(x!, at!, [1, 2]), x, counting([2]))).rejects.toThrow(
      /starts are f32\[2\]/,
    );
    await expect(run((x, at) => dynamicSlice(x!, at!, [1, 6]), x, integers([0, 0]))).rejects.toThrow(
      /a window of \[1, 6\] does not fit into f32\[4, 5\]; pass one size per dimension/,
    );
    await expect(run((x, at) => dynamicUpdateSlice(x!, at!, at!), x, integers([0, 0]))).rejects.toThrow(
      /i32\[2\] cannot be written into f32\[4, 5\]; cast the update to f32/,
    );
    await expect(run((x) => dynamicUpdateSlice(x!, x!, 3 as never), x)).rejects.toThrow(
      /its starts are .*3.*; pass an i32 tensor, or a list/,
    );
  });
});
