import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluate, matmul, NdArray, swapDims, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { choleskyInverse, eigenInverse } from "../src/index.ts";
import type { FactorInverse } from "../src/kfac/factor-inverse.ts";

const backend = await createCpuBackend();
const bitsOf = (arrays: readonly NdArray[]): string[] =>
  arrays.map((array) => Buffer.from(array.bytes()).toString("hex"));

// Some ranks invert a factor, and others receive its inverse. A placement must not change a bit.
test.each<readonly [string, FactorInverse]>([
  ["choleskyInverse", choleskyInverse],
  ["eigenInverse", eigenInverse],
])("%s: the sender of a factor has the bits that receivers unpack", async (_, inverse) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom([], [3]),
      fc.nat({ max: 1e6 }),
      async (n, blocks, seed) => {
        const shape = [...blocks, n, n];
        const run = evaluate((x: Tensor, damping: Tensor): Tensor[][] => {
          const factor = matmul(x, swapDims(x, -1, -2));
          const sides = inverse.derive({ input: factor, gradient: factor }, { input: n, gradient: n }, damping);
          const own = sides.input();
          const received = inverse.unpack(inverse.pack(own), shape);
          return [Object.values(own), Object.keys(own).map((name) => received[name]!)];
        }, backend);
        const [own, received] = await run(normalArray(shape, seed), NdArray.scalar(0.03));
        expect(bitsOf(received!)).toEqual(bitsOf(own!));
      },
    ),
    { numRuns: 30 },
  );
});
