import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import {
  type Backend,
  crossEntropyPerRow,
  evaluate,
  logSoftmax,
  multiply,
  NdArray,
  referenceBackend,
  softmax,
  sum,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";

// Logits are multiples of 2⁻⁶ below 2³, offsets are integers up to 2¹⁶. Their sums are exact in f32, so results must
// not depend on the offset.
const rowsOfLogits = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 21 }))
  .chain(([rows, classes]) =>
    fc.record({
      shape: fc.constant([rows, classes] as const),
      logits: fc.array(fc.integer({ min: -511, max: 511 }), { minLength: rows * classes, maxLength: rows * classes }),
      labels: fc.array(fc.nat(classes - 1), { minLength: rows, maxLength: rows }),
      offset: fc.integer({ min: -(2 ** 16), max: 2 ** 16 }),
    }),
  );

const functions: { readonly [name: string]: (x: Tensor, labels: Tensor, weights: Tensor) => Tensor } = {
  "cross-entropy": (x, labels) => sum(crossEntropyPerRow(x, labels)),
  softmax: (x, _, weights) => sum(multiply(softmax(x), weights)),
  "log-softmax": (x, _, weights) => sum(multiply(logSoftmax(x), weights)),
};

const makers: { readonly [name: string]: () => Promise<Backend> } = {
  reference: async () => referenceBackend(),
  ...Object.fromEntries(
    (["relaxed", "simd", "scalar"] as readonly WasmBuild[]).map((build) => [
      `cpu, ${build}`,
      () => createCpuBackend({ build, memory: createSharedMemory(64 * 2 ** 20) }),
    ]),
  ),
};

describe.each(Object.keys(makers))(
  "on %s, value and gradient keep every bit when all logits are shifted by an offset",
  (name) => {
    let backend: Backend;
    beforeAll(async () => {
      backend = await makers[name]!();
    });

    test.each(Object.keys(functions))("%s", async (op) => {
      const run = evaluate(
        (x: Tensor, labels: Tensor, weights: Tensor) =>
          valueAndGrad((own: Tensor) => functions[op]!(own, labels, weights))(x),
        backend,
      );
      await fc.assert(
        fc.asyncProperty(rowsOfLogits, async ({ shape, logits, labels, offset }) => {
          const at = async (shift: number): Promise<number[][]> => {
            const x = NdArray.from(
              logits.map((value) => value / 64 + shift),
              shape,
            );
            const weights = NdArray.from(
              logits.map((_, i) => Math.sin(i)),
              shape,
            );
            const results = (await run(x, NdArray.from(labels, undefined, "i32"), weights)) as unknown as NdArray[];
            return results.map((result) => result.toNumbers());
          };
          expect(await at(offset)).toEqual(await at(0));
        }),
        { numRuns: 25 },
      );
    });
  },
);
