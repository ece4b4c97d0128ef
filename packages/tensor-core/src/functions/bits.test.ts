import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { packBits, unpackBits } from "./bits.ts";
import { bitcast } from "./elementwise.ts";

const reference = referenceBackend();
const run = (fn: (x: Tensor) => Tensor, x: NdArray): Promise<NdArray> => evaluate(fn, reference)(x) as Promise<NdArray>;

describe("bits", () => {
  test("start with the lowest bit of the first word, rows separate", async () => {
    const x = NdArray.from(
      [1, 0, 1, ...new Array<number>(29).fill(0), 1, ...new Array<number>(32).fill(1), 0],
      [2, 33],
      "bool",
    );
    const words = await run(packBits, x);
    expect(words.shape).toEqual([2, 2]);
    expect(words.toNumbers()).toEqual([5, 1, 2 ** 32 - 1, 0]);
  });

  test("are restored unchanged", async () => {
    const rows = fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 70 }));
    await fc.assert(
      fc.asyncProperty(rows, fc.infiniteStream(fc.boolean()), async ([count, size], stream) => {
        const values = Array.from({ length: count * size }, () => (stream.next().value ? 1 : 0));
        const x = NdArray.from(values, [count, size], "bool");
        const y = await run((own) => unpackBits(packBits(own), size), x);
        expect(y).toEqual(x);
      }),
      { numRuns: 50 },
    );
  });

  test("reject other dtypes, scalars and counts that do not match", async () => {
    await expect(run(packBits, NdArray.from([1], [1], "u8"))).rejects.toThrow(/expected bool/);
    await expect(run(packBits, NdArray.scalar(1, "bool"))).rejects.toThrow(/expected bool/);
    const words = NdArray.from([1, 2], [2], "u32");
    await expect(run((own) => unpackBits(own, 65), words)).rejects.toThrow(/65 bits take u32 \[..., 3\]/);
    await expect(run((own) => unpackBits(own, 32), words)).rejects.toThrow(/32 bits take u32 \[..., 1\]/);
    await expect(run((own) => unpackBits(own, 1.5), words)).rejects.toThrow(/not a size/);
  });
});

describe("bitcast", () => {
  test("shows the bits of floats, and floats of bits", async () => {
    const floats = NdArray.from([1, -2, 0, -0, Infinity, 2 ** -149]);
    expect(await run((x) => bitcast(x, "u32"), floats).then((y) => y.toNumbers())).toEqual([
      0x3f800000, 0xc0000000, 0, 0x80000000, 0x7f800000, 1,
    ]);
    expect(await run((x) => bitcast(x, "i32"), floats).then((y) => y.toNumbers())).toEqual([
      0x3f800000, -0x40000000, 0, -0x80000000, 0x7f800000, 1,
    ]);
  });

  test("is restored unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.float(), { minLength: 1 }), async (values) => {
        const x = NdArray.from(values);
        for (const dtype of ["u32", "i32"] as const)
          expect(await run((own) => bitcast(bitcast(own, dtype), "f32"), x)).toEqual(x);
      }),
    );
  });

  test("rejects elements of other sizes", async () => {
    await expect(run((x) => bitcast(x, "f32"), NdArray.from([1], [1], "u8"))).rejects.toThrow(
      /dtype u8 is not supported/,
    );
    await expect(run((x) => bitcast(x, "f16"), NdArray.from([1]))).rejects.toThrow(
      /cannot be read as f16, which has 2 bytes/,
    );
  });
});
