import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import {
  dequantize,
  evaluate,
  type NdArray,
  quantize,
  randomKey,
  referenceBackend,
  type Tensor,
} from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, test } from "vitest";

describe("quantization on the CPU", () => {
  const cases = ([8, 4, 2] as const).flatMap((bits) => [1, 5, 64, 1003].map((size) => [bits, size] as const));

  test.each(cases)("%i bits, rows of %i: the codes of the reference, with and without a key", async (bits, size) => {
    const backend = await createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
    const fn = (x: Tensor, key: Tensor): readonly Tensor[] =>
      [quantize(x, { bits }), quantize(x, { bits, key })].flatMap(({ codes, scale }) => [
        codes,
        dequantize(codes, scale, { bits, count: size }),
      ]);
    const inputs = [normalArray([3, size], 7), randomKey(3)] as const;
    const ours = (await evaluate(fn, backend)(...inputs)) as readonly NdArray[];
    const theirs = (await evaluate(fn, referenceBackend())(...inputs)) as readonly NdArray[];
    for (const i of [0, 2]) expect(ours[i]!.data).toEqual(theirs[i]!.data);
    for (const i of [1, 3]) {
      const expected = theirs[i]!.toNumbers();
      ours[i]!.toNumbers().forEach((value, at) => expect(Math.abs(value - expected[at]!)).toBeLessThan(1e-6));
    }
  });
});
