import { bytesPerElement, type DType, NdArray } from "@skein/tensor-core";
import { fromBf16Bits, fromF16Bits, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { compileWasm, instantiateWasm } from "../src/wasm-build.ts";

// Reductions that @skein/collectives looks up in a kernel module by name.
const operations: { readonly [name: string]: (a: number, b: number) => number } = {
  Sum: (a, b) => a + b,
  Max: Math.max,
  Min: Math.min,
};
const dtypes: readonly DType[] = ["f32", "f16", "bf16", "i32", "u32"];
const counts = [0, 1, 3, 4, 15, 16, 17, 67];

/**
 * Fills an array with test values: 16-bit patterns with stride 977; f32 special values (−0, NaN, ±Infinity, a
 * subnormal) and numbers of many magnitudes; 32-bit integers over the complete range.
 */
const fill = (array: NdArray, seed: number): void => {
  for (let i = 0; i < array.data.length; i++)
    array.data[i] = bytesPerElement[array.dtype] === 2 ? (i * 977 + seed * 31_337) & 0xffff : 0;
  if (array.dtype === "f32")
    for (let i = 0; i < array.data.length; i++)
      array.data[i] =
        [Math.sin(i * 3 + seed) * 10 ** ((i * 7 + seed) % 30), -0, NaN, Infinity, -Infinity, 1e-40][i % 11] ??
        i - 5 * seed;
  if (array.dtype === "i32" || array.dtype === "u32")
    for (let i = 0; i < array.data.length; i++) array.data[i] = Math.imul(i + 1, 0x9e3779b9 * seed);
};

const expected = (dtype: DType, apply: (a: number, b: number) => number, a: NdArray, b: NdArray): NdArray => {
  const decode = dtype === "f16" ? fromF16Bits : dtype === "bf16" ? fromBf16Bits : (value: number) => value;
  const encode = dtype === "f16" ? toF16Bits : dtype === "bf16" ? toBf16Bits : (value: number) => value;
  const result = NdArray.zeros(dtype, a.shape);
  for (let i = 0; i < a.data.length; i++) {
    const value = apply(decode(a.data[i]!), decode(b.data[i]!));
    result.data[i] = encode(dtype === "i32" || dtype === "u32" ? value : Math.fround(value));
  }
  return result;
};

/** Returns the numbers of an array, with all NaNs replaced by the same NaN. */
const canonical = (array: NdArray): number[] => array.toNumbers().map((value) => (Number.isNaN(value) ? NaN : value));

describe.each(["relaxed", "simd", "scalar"] as const)("%s build", (build) => {
  test.each(dtypes)("%s", async (dtype) => {
    const memory = new WebAssembly.Memory({ initial: 4, maximum: 65_536, shared: true });
    const wasm = instantiateWasm(await compileWasm(build), memory);
    const at = (address: number, count: number): Uint8Array =>
      new Uint8Array(memory.buffer, address, count * bytesPerElement[dtype]);
    const read = (address: number, count: number): NdArray => {
      const array = NdArray.zeros(dtype, [count]);
      array.bytes().set(at(address, count));
      return array;
    };
    for (const count of bytesPerElement[dtype] === 2 ? [...counts, 5003] : counts) {
      const a = NdArray.zeros(dtype, [count]);
      const b = NdArray.zeros(dtype, [count]);
      fill(a, 1);
      fill(b, 2);
      for (const [name, apply] of Object.entries(operations)) {
        const want = canonical(expected(dtype, apply, a, b));
        const addresses = [64, 32_768 + bytesPerElement[dtype], 65_536] as const; // not all aligned to a vector
        const reset = (): void => {
          at(addresses[0], count).set(a.bytes());
          at(addresses[1], count).set(b.bytes());
          at(addresses[2], count + 1).fill(0x5a);
        };
        reset();
        wasm[`accumulate${name}${dtype.toUpperCase()}`]!(addresses[2], addresses[0], addresses[1], count);
        expect(canonical(read(addresses[2], count)), `${name} of ${count}`).toEqual(want);
        expect(
          at(addresses[2] + count * bytesPerElement[dtype], 1).every((byte) => byte === 0x5a),
          "writes past the end",
        ).toBe(true);
        wasm[`accumulate${name}${dtype.toUpperCase()}`]!(addresses[1], addresses[0], addresses[1], count);
        expect(canonical(read(addresses[1], count)), `${name} of ${count} in place`).toEqual(want);
        const exchange = wasm[`exchange${name}${dtype.toUpperCase()}`];
        if (exchange === undefined) continue;
        reset();
        exchange(addresses[0], addresses[1], count);
        for (const address of addresses.slice(0, 2))
          expect(canonical(read(address, count)), `exchange ${name} of ${count}`).toEqual(want);
      }
    }
  });
});
