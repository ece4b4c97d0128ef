import { bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import { fromBf16Bits, fromF16Bits, hostArrayType, toBf16Bits, toF16Bits } from "@skein/tensor-core/backend";
import type { Arithmetic } from "./arithmetic.ts";

const operations: { readonly [R in Reduction]: (a: number, b: number) => number } = {
  sum: (a, b) => a + b,
  max: Math.max,
  min: Math.min,
};

const codec = (dtype: DType): { decode: (stored: number) => number; encode: (value: number) => number } => {
  if (dtype === "f16") return { decode: fromF16Bits, encode: (value) => toF16Bits(Math.fround(value)) };
  if (dtype === "bf16") return { decode: fromBf16Bits, encode: (value) => toBf16Bits(Math.fround(value)) };
  return { decode: (stored) => stored, encode: (value) => value }; // Typed arrays wrap and round on store.
};

/** Rounds a partial sum to the array's type, so that every addition rounds as in WebAssembly. */
const roundStored = (array: { [index: number]: number }, index: number, value: number): number => {
  array[index] = value;
  return array[index]!;
};

/**
 * Returns reductions in plain JavaScript loops, for transports without WebAssembly memory and for tests. Arrays need no
 * alignment.
 *
 * @example
 * ```ts
 * const [ring, world] = [ringAllReduce, createMemoryWorld(2)];
 * const sums = world.map(async (transport) => {
 *   const schedule = ring.schedule({ rank: transport.rank, worldSize: 2, elementCount: 1 });
 *   const vector = Float32Array.of(transport.rank + 1);
 *   const bytes = new Uint8Array(vector.buffer);
 *   await execute(schedule, { input: bytes, output: bytes, dtype: "f32", tag: 1 }, transport, plainArithmetic());
 *   return vector[0];
 * });
 * console.log(await Promise.all(sums)); // [3, 3]
 * ```
 */
export const plainArithmetic = (): Arithmetic => ({
  combine: (dtype, reduction, targets, sources) => {
    const { decode, encode } = codec(dtype);
    const apply = operations[reduction];
    const ArrayType = hostArrayType[dtype];
    const width = bytesPerElement[dtype];
    const operands = sources.map((bytes) => {
      const aligned = bytes.byteOffset % width === 0 ? bytes : bytes.slice();
      return new ArrayType(aligned.buffer, aligned.byteOffset, aligned.byteLength / width);
    });
    const result = new ArrayType(new ArrayBuffer(sources[0]!.byteLength));
    for (let i = 0; i < result.length; i++) {
      let stored = operands[0]![i]!;
      for (let k = 1; k < operands.length; k++)
        stored = roundStored(result, i, encode(apply(decode(stored), decode(operands[k]![i]!))));
      result[i] = stored;
    }
    const bytes = new Uint8Array(result.buffer);
    for (const target of targets) target.set(bytes);
  },
  copy: (target, source) => target.set(source),
});
