import { createCpuBackend, type WasmBuild } from "@skein/cpu-kernels";
import { checkGradientValues, checkValues, conformanceCases } from "@skein/testing";
import { attention, type Backend, conv2d, evaluate, matmul, NdArray, sin, type Tensor, vjp } from "@skein/tensor-core";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { type Contraction, contractionOps } from "../src/blas.ts";
import { groupedOps } from "../src/blas/with-blas.ts";
import { createGuardedBackend } from "./guarded-backend.ts";
import { plainBlas } from "./plain-blas.ts";

const ops: readonly string[] = [...contractionOps, ...groupedOps];
const rows = conformanceCases.filter(({ op }) => ops.includes(op));

const guarded = (build: WasmBuild): Promise<Backend> => createGuardedBackend(build, undefined, plainBlas());

const runs: readonly (readonly [name: string, open: () => Promise<Backend>])[] = [
  ["the relaxed build", () => createCpuBackend({ build: "relaxed", blas: plainBlas() })],
  ["the simd build, guarded", () => guarded("simd")],
  ["the scalar build, guarded", () => guarded("scalar")],
];

describe.each(runs)("conformance of products outside of WebAssembly, with %s", (_, open) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await open();
  });

  test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });
});

const image = fc.record({
  batch: fc.integer({ min: 0, max: 3 }),
  size: fc.integer({ min: 1, max: 40 }),
  channels: fc.integer({ min: 1, max: 5 }),
  outChannels: fc.integer({ min: 1, max: 5 }),
  groups: fc.integer({ min: 1, max: 2 }),
  kernel: fc.integer({ min: 1, max: 4 }),
  stride: fc.integer({ min: 1, max: 3 }),
  padding: fc.integer({ min: 0, max: 3 }),
  dilation: fc.integer({ min: 1, max: 2 }),
});

const valuesOf = (shape: readonly number[], seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(seed + 12.9898 * i)),
    [...shape],
  );

const largestDifference = (a: NdArray, b: NdArray): number => {
  const others = b.toNumbers();
  return a.toNumbers().reduce((most, value, i) => Math.max(most, Math.abs(value - others[i]!)), 0);
};

test("convolutions by patches equal convolutions by address, for all sizes", async () => {
  const [plain, blas] = [await createCpuBackend(), await createCpuBackend({ blas: plainBlas() })];
  await fc.assert(
    fc.asyncProperty(
      image,
      async ({ batch, size, channels, outChannels, groups, kernel, stride, padding, dilation }) => {
        fc.pre(size + 2 * padding >= (kernel - 1) * dilation + 1);
        const x = valuesOf([batch, size, size + 1, channels * groups], 1);
        const w = valuesOf([kernel, kernel, channels, outChannels * groups], 2);
        const edge = [padding, padding] as const;
        const both = (x: Tensor, w: Tensor): Tensor[] => {
          const options = { stride, padding: [edge, edge], dilation, groups } as const;
          const { value, pullback } = vjp(([x, w]: Tensor[]) => conv2d(x!, w!, options), [x, w]);
          return [value, ...pullback(sin(value))];
        };
        const [own, other] = await Promise.all([plain, blas].map((backend) => evaluate(both, backend)(x, w)));
        own!.forEach((array, i) =>
          expect(largestDifference(array, other![i]!)).toBeLessThan(1e-4 * Math.max(1, batch * size)),
        );
      },
    ),
    // This example has two blocks of pixels per group.
    {
      numRuns: 60,
      examples: [
        [{ batch: 5, size: 40, channels: 4, outChannels: 2, groups: 2, kernel: 3, stride: 1, padding: 1, dilation: 1 }],
      ],
    },
  );
});

const heads = fc.record({
  queries: fc.integer({ min: 1, max: 90 }),
  keys: fc.integer({ min: 1, max: 90 }),
  width: fc.integer({ min: 1, max: 9 }),
  causal: fc.boolean(),
  long: fc.boolean(),
});

test("attention by complete rows of scores equals attention by tiles, also over several blocks of queries", async () => {
  const [plain, blas] = [await createCpuBackend(), await createCpuBackend({ blas: plainBlas() })];
  await fc.assert(
    fc.asyncProperty(heads, async ({ queries, keys: few, width, causal, long }) => {
      const keys = long ? few + 1500 : few; // several blocks of 42 queries, or one block
      const [q, k, v] = [
        valuesOf([1, 2, queries, width], 1),
        valuesOf([1, 2, keys, width], 2),
        valuesOf([1, 2, keys, width], 3),
      ];
      const both = (q: Tensor, k: Tensor, v: Tensor): Tensor[] => {
        const { value, pullback } = vjp(([q, k, v]: Tensor[]) => attention(q!, k!, v!, { causal }), [q, k, v]);
        return [value, ...pullback(sin(value))];
      };
      const [own, other] = await Promise.all([plain, blas].map((backend) => evaluate(both, backend)(q, k, v)));
      own!.forEach((array, i) => expect(largestDifference(array, other![i]!)).toBeLessThan(1e-4));
    }),
    { numRuns: 40 },
  );
});

test("runs a shape with the BLAS exactly if the BLAS prefers it, and asks by its sizes", async () => {
  const asked: Contraction[] = [];
  let products = 0;
  const blas = plainBlas((contraction) => {
    asked.push(contraction);
    return contraction.rows === 2;
  });
  const counted = {
    ...blas,
    open:
      (memory: WebAssembly.Memory) =>
      (...args: Parameters<ReturnType<typeof blas.open>>) => {
        products++;
        blas.open(memory)(...args);
      },
  };
  const backend = await createCpuBackend({ blas: counted });
  const product = evaluate((a: Tensor, b: Tensor) => matmul(a, b, { transposeB: true }), backend);
  const [two, three] = [NdArray.from([1, 2, 3, 4, 5, 6], [2, 3]), NdArray.from([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])];
  expect((await product(two, three)).toNumbers()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(products).toBe(1);
  expect((await product(three, two)).toNumbers()).toEqual([1, 4, 2, 5, 3, 6]);
  expect(products).toBe(1);
  expect(asked).toContainEqual({ op: "matmul", variant: "nt", rows: 2, columns: 3, inner: 3 });
  expect(asked).toContainEqual({ op: "matmul", variant: "nt", rows: 3, columns: 2, inner: 3 });
});
