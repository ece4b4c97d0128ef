import type { NdArray } from "@skein/tensor-core";
import { checkRows, examples, normalArray, rowCases, rowRanges, rowSlice } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DeviceFacts, minimalDevice, type WebGpuBackend } from "../src/index.ts";
import { staticChoice } from "../src/kernels/matmul/choose.ts";
import { keepsSumOrder, splitsByRule, sumOrderOf } from "../src/kernels/matmul/sum-order.ts";
import { hasAdapter, openBackend } from "./gpu.ts";
import { ForcedProducts, layouts, operands, productOf } from "./products.ts";
import { runNode } from "./run-node.ts";

describe.skipIf(!hasAdapter)("rows do not depend on other rows on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(rowCases.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    // Each pipeline takes a tenth of a second to compile, so only one row and a few rows are tested.
    await checkRows(row, backend, examples(rowRanges(row.rows).slice(1, 3), rowRanges(row.rows)));
  });

  // Facts of a GPU, which the adapter of this machine usually is not. Plans for a GPU differ in layouts of rows, tiles
  // and split sums.
  const gpu: DeviceFacts = minimalDevice;
  const gamma = normalArray([600], 2);
  const convolved = (kernel: readonly number[], groups = 1) =>
    [
      [normalArray(kernel, 2)],
      {
        stride: [1, 1],
        padding: [
          [1, 1],
          [1, 1],
        ],
        dilation: [1, 1],
        groups,
      },
    ] as const;
  test.each([
    ["sum", [150], [], { dims: [1] }],
    ["sum", [20_000], [], { dims: [1] }],
    ["sum", [300, 5], [], { dims: [1] }],
    ["softmax", [600], [], {}],
    ["layer-norm", [600], [gamma, gamma], { epsilon: 1e-5 }],
    ["cumsum", [150], [], { dim: 1, reverse: false }],
    ["conv2d", [6, 6, 64], ...convolved([3, 3, 64, 16])],
    // With 2¹⁸ or more results, an invocation computes more pixels.
    ["conv2d", [64, 64, 2], ...convolved([3, 3, 2, 8])],
    ["conv2d", [64, 64, 8], ...convolved([3, 3, 1, 8], 8)],
  ] as const)("%s of rows %j with the plans of a GPU", async (op, shape, others, params) => {
    const x = normalArray([9, ...shape], 1);
    const run = async (input: NdArray): Promise<NdArray> =>
      (await runNode(backend, op, [input, ...others], params as never, { facts: gpu }))[0]!;
    const whole = await run(x);
    for (const [begin, end] of [
      [0, 1],
      [8, 9],
      [2, 5],
    ] as const)
      expect((await run(rowSlice(x, 0, begin, end))).toNumbers(), `rows ${begin} to ${end}`).toEqual(
        rowSlice(whole, 0, begin, end).toNumbers(),
      );
  });
});

describe.skipIf(!hasAdapter)("entries of the batch of attention with the plans of a GPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test("do not depend on other entries, and queries not on other queries", { tags: "full" }, async () => {
    // With 256 or more tiles of queries, tiles are larger.
    const [q, k, v] = [1, 2, 3].map((seed) => normalArray([9, 30, 33, 16], seed)) as [NdArray, NdArray, NdArray];
    const run = async (...inputs: NdArray[]): Promise<NdArray> =>
      (await runNode(backend, "attention", inputs, { causal: false, scale: 0.25 }, { facts: minimalDevice }))[0]!;
    const whole = await run(q, k, v);
    const entry = [q, k, v].map((array) => rowSlice(array, 0, 4, 5)) as [NdArray, NdArray, NdArray];
    expect((await run(...entry)).toNumbers()).toEqual(rowSlice(whole, 0, 4, 5).toNumbers());
    expect((await run(rowSlice(q, 2, 5, 6), k, v)).toNumbers()).toEqual(rowSlice(whole, 2, 5, 6).toNumbers());
  });
});

describe("the order of additions of a product", () => {
  const devices: readonly DeviceFacts[] = [
    minimalDevice,
    { ...minimalDevice, software: true },
    {
      ...minimalDevice,
      f16: true,
      subgroups: true,
      minSubgroupSize: 32,
      maxSubgroupSize: 32,
      maxWorkgroupBytes: 32_768,
      subgroupMatrices: [{ operands: "f16", result: "f32", rows: 16, columns: 16, inner: 16 }],
    },
  ];
  test("does not depend on the number of rows or matrices", () => {
    const size = fc.constantFrom(1, 2, 8, 9, 64, 513, 4096, 70_000);
    fc.assert(
      fc.property(
        fc.constantFrom(...devices),
        fc.constantFrom(...layouts),
        fc.constantFrom("f32", "f16"),
        fc.array(fc.record({ batch: fc.constantFrom(1, 2, 96), rows: size }), { minLength: 2, maxLength: 6 }),
        size,
        size,
        (facts, [transposeA, transposeB], dtype, many, columns, inner) => {
          const orders = many.map(({ batch, rows }) => {
            const product = productOf(rows, columns, inner, { batch, transposeA, transposeB, dtype });
            expect(keepsSumOrder(staticChoice(product, facts), product, facts)).toBe(true);
            return { order: sumOrderOf(product, facts), pieces: splitsByRule(product, facts) };
          });
          for (const other of orders) expect(other).toEqual(orders[0]);
        },
      ),
      { numRuns: 300, seed: 20_261_128 },
    );
  });
});

describe.skipIf(!hasAdapter)("variants with the same order of additions give the same bits", () => {
  let products: ForcedProducts;
  beforeAll(async () => {
    products = await ForcedProducts.open();
  });
  afterAll(() => products.backend.close());

  test.each([
    [
      "in order",
      ["naive", "tiled-16x16", "register-32x32-4x4", "direct-4x4", "direct-8x8", "subgroup-8x4", "few-rows"],
    ],
    ["in pieces", ["split-direct-4x4", "split-register-32x32-4x4"]],
  ])("%s", async (order, names) => {
    const product = productOf(7, 21, 1031, { transposeA: order === "in pieces" });
    const inputs = operands(product);
    const expected = (await products.run(names[0]!, product, inputs)).toNumbers();
    for (const name of names.slice(1))
      expect((await products.run(name, product, inputs)).toNumbers(), name).toEqual(expected);
  });

  test.each([false, true])("few rows on a GPU, first operand transposed: %s", async (transposeA) => {
    const inputs = [normalArray(transposeA ? [1031, 7] : [7, 1031], 1), normalArray([1031, 45], 2)] as const;
    const run = async (rows: readonly [number, number]): Promise<number[]> => {
      const part = [rowSlice(inputs[0], transposeA ? 1 : 0, ...rows), inputs[1]];
      const params = { transposeA, transposeB: false };
      return (await runNode(products.backend, "matmul", part, params, { facts: minimalDevice }))[0]!.toNumbers();
    };
    const whole = await run([0, 7]);
    for (const [begin, end] of [
      [6, 7],
      [2, 5],
    ] as const)
      expect(await run([begin, end])).toEqual(whole.slice(begin * 45, end * 45));
    // The transposed operand is summed in pieces, so its results differ bitwise.
    const plain = await products.run("naive", productOf(7, 45, 1031, { transposeA }), inputs);
    if (!transposeA) expect(whole).toEqual(plain.toNumbers());
  });
});
