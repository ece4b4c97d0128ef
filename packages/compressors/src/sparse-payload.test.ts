import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { firstThenSecond, nanUnless, packSparse, unpackSparse } from "./sparse-payload.ts";

describe("packSparse", () => {
  it("is inverted by unpackSparse, bit for bit, including indices above 2²⁴", async () => {
    const values = [1.5, -0, Infinity, 1e-45, -3.4e38, 0];
    const indices = [0, 1, 2 ** 24 + 1, 2 ** 31 - 1, 7, 0];
    const pack = (v: Tensor, i: Tensor) => {
      const packed = packSparse({ values: v, indices: i });
      return { packed, ...unpackSparse(packed) };
    };
    const back = await evaluate(pack, referenceBackend())(NdArray.from(values), NdArray.from(indices, [6], "i32"));
    expect([back.packed.dtype, back.packed.shape]).toEqual(["u32", [6, 2]]);
    expect(back.values.toNumbers()).toEqual([...Float32Array.from(values)]);
    expect(back.indices.toNumbers()).toEqual(indices);
  });
});

describe("firstThenSecond", () => {
  const sets = fc.array(fc.constantFrom("first", "second", "neither"), { minLength: 1, maxLength: 30 });

  it("takes indices of the first set before those of the second, each ascending, up to the capacity", async () => {
    await fc.assert(
      fc.asyncProperty(sets, fc.integer({ min: 1, max: 35 }), async (members, capacity) => {
        const mask = (name: string): NdArray =>
          NdArray.from(
            members.map((own) => Number(own === name)),
            [members.length],
            "bool",
          );
        const { indices, count } = await evaluate(
          (a: Tensor, b: Tensor) => firstThenSecond(a, b, capacity),
          referenceBackend(),
        )(mask("first"), mask("second"));
        const of = (name: string): number[] => members.flatMap((own, i) => (own === name ? [i] : []));
        const expected = [...of("first"), ...of("second")].slice(0, capacity);
        expect(count.toNumbers()).toEqual([expected.length]);
        expect(indices.toNumbers()).toEqual([...expected, ...new Array<number>(capacity - expected.length).fill(0)]);
      }),
      { seed: 1 },
    );
  });
});

describe("nanUnless", () => {
  const valuesOf = async (finite: number): Promise<number[]> => {
    const { values } = await evaluate(
      (v: Tensor, indices: Tensor, ok: Tensor) => nanUnless(ok, { values: v, indices }),
      referenceBackend(),
    )(NdArray.from([5, -0, 7]), NdArray.from([2, 1, 0], [3], "i32"), NdArray.from([finite], [], "bool"));
    return values.toNumbers();
  };

  it("makes every value NaN for a non-finite gradient, and none otherwise", async () => {
    expect(await valuesOf(1)).toEqual([5, -0, 7]);
    expect(await valuesOf(0)).toEqual([NaN, NaN, NaN]);
  });
});
