import { type DType, dtypes, elementCount, NdArray, type TensorSpec } from "@skein/tensor-core";
import { hostArrayType, type KernelNode, operators } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { nodeOf, runPlan } from "../../../test/run-plan.ts";
import type { KernelPlan, Pass } from "../../kernel.ts";
import { gatherKernel } from "../../ops/gather.ts";
import { scatterAddKernel } from "../../ops/scatter-add.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { denseCopyPass } from "../movement/view-copy.ts";
import type { IndexedSizes } from "./gather.ts";
import { scatterAddDirectPass, scatterAddSorted } from "./scatter-add.ts";
import { stableOrderPasses } from "./stable-order.ts";

const nodeFor = (op: string, inputs: readonly TensorSpec[], params: KernelNode["params"]): KernelNode =>
  nodeOf(op, inputs, operators[op]!.infer(inputs, params), params);

const integers = (values: ArrayLike<number>): NdArray => NdArray.from(values, [values.length], "i32");

describe("plans of indexing", () => {
  const scatter = (rows: number, count: number, dtype: DType, placed: readonly boolean[] = []): Pass[] => {
    const specs: TensorSpec[] = [
      { dtype, shape: [rows, 768] },
      { dtype: "i32", shape: [count] },
      { dtype, shape: [count, 768] },
    ];
    return [...scatterAddKernel.plan(nodeFor("scatter-add", specs, { dim: 0 }), minimalDevice, {}, placed).passes];
  };
  const labels = (passes: readonly Pass[]): string[] => passes.map(({ label }) => label);

  test("copy the base only if it is not already in the output", () => {
    expect(labels(scatter(50, 16, "f32"))).toEqual(["scatter-add base 16 bytes", "scatter-add direct"]);
    expect(labels(scatter(50, 16, "f32", [true, false, false]))).toEqual(["scatter-add direct"]);
    expect(labels(scatter(50, 16, "i32", [true, false, false]))).toEqual(["scatter-add integers"]);
    expect(scatter(50, 0, "f32", [true, false, false])).toEqual([]);
  });

  test("sort the tokens of an embedding by two digits", () => {
    const passes = scatter(50_257, 4096, "f32", [true, false, false]);
    const digit = ["stable order: count digits", "prefix sum: one block", "stable order: place by digit"];
    expect(labels(passes)).toEqual([...digit, ...digit, "scatter-add sorted"]);
    for (const { bindings, workgroupSize } of passes) {
      expect(bindings.length).toBeLessThanOrEqual(minimalDevice.maxBindings);
      expect(workgroupSize).toBeLessThanOrEqual(minimalDevice.maxWorkgroupSize);
    }
  });

  test("gather wide rows in vectors", () => {
    const gather = (inner: number, dtype: DType): string => {
      const specs: TensorSpec[] = [
        { dtype, shape: [9, inner] },
        { dtype: "i32", shape: [4] },
      ];
      return gatherKernel.plan(nodeFor("gather", specs, { dim: 0, outside: "zero" }), minimalDevice, {}, []).passes[0]!
        .label;
    };
    expect(gather(768, "f32")).toBe("gather rows of 192x16 bytes");
    expect(gather(24, "f16")).toBe("gather rows of 3x16 bytes");
    expect(gather(6, "f16")).toBe("gather rows of 3x4 bytes");
    expect(gather(7, "u8")).toBe("gather rows of 7x1 bytes");
  });
});

describe.skipIf(!hasAdapter)("indexing on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  /** Returns the stable argsort of the indices, copied from scratch memory. */
  const orderOf = async (indices: NdArray, size: number): Promise<number[]> => {
    const count = elementCount(indices.shape);
    const { passes, scratch, order } = stableOrderPasses({ input: 0 }, count, size, 0);
    const out: Pass = {
      label: "bring out",
      bindings: [
        { name: "order", type: "array<u32>", source: order, access: "read" },
        { name: "y", type: "array<u32>", source: { output: 0 }, access: "write" },
      ],
      workgroupSize: 64,
      groups: Math.ceil(count / 64),
      code: `fn main(group: u32, lane: u32) { let at = group * 64u + lane; if (at < ${count}u) { y[at] = order[at]; } }`,
    };
    const [bytes] = await runPlan(
      backend.device,
      { scratch, passes: [...passes, out] },
      [indices],
      [{ dtype: "u32", shape: [count] }],
    );
    return [...new Uint32Array(bytes!)];
  };

  test.each([
    [1, 1],
    [255, 3],
    [1000, 255],
    [1000, 256],
    [3000, 70_000],
    [70_001, 5],
  ])(
    "%i positions are sorted by %i rows, stable for equal rows, with out-of-range indices last",
    async (count, size) => {
      const indices = uniformArray([count], -2, size + 2, 7, "i32");
      const key = (position: number): number => {
        const index = indices.data[position]!;
        return index >= 0 && index < size ? index : size;
      };
      const expected = Array.from({ length: count }, (_, i) => i).sort((a, b) => key(a) - key(b) || a - b);
      expect(await orderOf(indices, size)).toEqual(expected);
    },
  );

  /** Computes the reference with a loop over the updates, in f32. */
  const scatterLoop = (
    base: NdArray,
    indices: NdArray,
    updates: NdArray,
    { outer, size, inner, count }: IndexedSizes,
  ): Float32Array => {
    const sum = Float32Array.from(base.data as Float32Array);
    for (let block = 0; block < outer; block++)
      for (let i = 0; i < count; i++) {
        const row = indices.data[i]!;
        if (row < 0 || row >= size) continue;
        for (let j = 0; j < inner; j++)
          sum[(block * size + row) * inner + j]! += updates.data[(block * count + i) * inner + j]!;
      }
    return sum;
  };
  const scatterCase = (sizes: IndexedSizes, indices: NdArray) => {
    const { outer, size, inner, count } = sizes;
    const base = normalArray([outer, size, inner], 1);
    const updates = normalArray([outer, count, inner], 2);
    const copy = denseCopyPass(outer * size * inner, "f32", "base");
    const run = async (plan: KernelPlan): Promise<Float32Array> => {
      const all = { ...plan, passes: [copy, ...plan.passes] };
      return new Float32Array((await runPlan(backend.device, all, [base, indices, updates], [base]))[0]!);
    };
    return { run, expected: scatterLoop(base, indices, updates, sizes) };
  };

  test("scatter-add has the bits of a loop, sorted or not", async () => {
    const some = fc.record({
      outer: fc.constantFrom(1, 3),
      size: fc.integer({ min: 1, max: 12 }),
      inner: fc.constantFrom(3, 4),
      indices: fc.array(fc.integer({ min: -2, max: 13 }), { minLength: 1, maxLength: 60 }),
    });
    await fc.assert(
      fc.asyncProperty(some, async ({ indices, ...rest }) => {
        const sizes = { ...rest, count: indices.length };
        const { run, expected } = scatterCase(sizes, integers(indices));
        expect(await run({ passes: [scatterAddDirectPass(sizes)] })).toEqual(expected);
        expect(await run(scatterAddSorted(sizes))).toEqual(expected);
      }),
      { numRuns: 12 },
    );
  });

  test.each<[string, IndexedSizes, NdArray]>([
    [
      "rows of a large table",
      { outer: 1, size: 20_000, inner: 12, count: 3000 },
      uniformArray([3000], -5, 20_005, 3, "i32"),
    ],
    [
      "one hot row",
      { outer: 1, size: 500, inner: 64, count: 4099 },
      NdArray.from(new Array<number>(4099).fill(321), [4099], "i32"),
    ],
    ["few rows, many updates", { outer: 2, size: 3, inner: 5, count: 5000 }, uniformArray([5000], 0, 3, 3, "i32")],
    ["two digits, blocks", { outer: 3, size: 300, inner: 4, count: 1025 }, uniformArray([1025], 0, 300, 3, "i32")],
  ])("scatter-add of %s has the bits of a loop, run after run", async (_, sizes, indices) => {
    const { run, expected } = scatterCase(sizes, indices);
    expect(await run(scatterAddSorted(sizes))).toEqual(expected);
    expect(await run(scatterAddSorted(sizes))).toEqual(expected);
  });

  test("integers wrap, and out-of-range indices are ignored", async () => {
    const inputs = [
      NdArray.from([2 ** 31 - 1, 5, -7], [3], "i32"),
      integers([0, 2, 0, -1, 3, 2, 2 ** 31 - 1, -(2 ** 31)]),
      NdArray.from([1, 2, 3, 100, 100, 5, 100, 100], [8], "i32"),
    ];
    const node = nodeFor("scatter-add", inputs, { dim: 0 });
    const [bytes] = await runPlan(
      backend.device,
      scatterAddKernel.plan(node, minimalDevice, {}, []),
      inputs,
      node.outputs,
    );
    expect([...new Int32Array(bytes!)]).toEqual([-(2 ** 31) + 3, 5, 0]);
  });

  test("gather supports any rows of any dtype", async () => {
    const some = fc.record({
      outer: fc.integer({ min: 1, max: 3 }),
      size: fc.integer({ min: 1, max: 9 }),
      inner: fc.integer({ min: 1, max: 17 }),
      indices: fc.array(fc.integer({ min: -2, max: 10 }), { minLength: 1, maxLength: 20 }),
      outside: fc.constantFrom("zero", "invalid"),
      dtype: fc.constantFrom(...dtypes),
    });
    await fc.assert(
      fc.asyncProperty(some, async ({ outer, size, inner, indices, outside, dtype }) => {
        const inputs = [normalArray([outer, size, inner], 1, dtype), integers(indices)];
        const node = nodeFor("gather", inputs, { dim: 1, outside });
        const operands = inputs.map((input) => ({ spec: input, data: Float64Array.from(input.toNumbers()) }));
        const [expected] = operators["gather"]!.reference(operands, node.params, node.outputs);
        const [output] = node.outputs;
        const [bytes] = await runPlan(
          backend.device,
          gatherKernel.plan(node, minimalDevice, {}, []),
          inputs,
          node.outputs,
        );
        const actual = new NdArray(
          dtype,
          output!.shape,
          new hostArrayType[dtype](bytes!, 0, elementCount(output!.shape)),
        );
        expect(actual.toNumbers()).toEqual([...expected!]);
      }),
      { numRuns: 20 },
    );
  });
});
