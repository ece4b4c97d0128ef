import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import {
  dequantize,
  evaluate,
  greater,
  type NdArray,
  packBits,
  quantize,
  randomKey,
  type Tensor,
  unpackBits,
  where,
} from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

describe.skipIf(!hasAdapter)("compression on WebGPU", () => {
  let backend: WebGpuBackend;
  let cpu: Awaited<ReturnType<typeof createCpuBackend>>;
  beforeAll(async () => {
    backend = await openBackend();
    cpu = await createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
  });
  afterAll(() => backend.close());

  const agree = async (fn: (...x: Tensor[]) => readonly Tensor[], inputs: readonly NdArray[]): Promise<void> => {
    const ours = (await evaluate(fn, backend)(...inputs)) as readonly NdArray[];
    const theirs = (await evaluate(fn, cpu)(...inputs)) as readonly NdArray[];
    ours.forEach((array, i) => expect(array.data).toEqual(theirs[i]!.data));
  };

  const cases = ([8, 4, 2] as const).flatMap((bits) => [5, 64, 1003].map((size) => [bits, size] as const));
  test.each(cases)("%i bits, rows of %i: the bytes of the CPU, with and without a key", async (bits, size) => {
    const fn = (x: Tensor, key: Tensor): readonly Tensor[] =>
      [quantize(x, { bits }), quantize(x, { bits, key })].flatMap(({ codes, scale }) => [
        codes,
        scale,
        dequantize(codes, scale, { bits, count: size }),
      ]);
    await agree(fn as (...x: Tensor[]) => readonly Tensor[], [normalArray([3, size], 7), randomKey(3)]);
  });

  test("signs as bits, and back", async () => {
    await agree(
      (x) => {
        const words = packBits(greater(x!, 0));
        return [words, where(unpackBits(words, 1003), 0.5, -0.5)];
      },
      [normalArray([3, 1003], 7)],
    );
  });
});
