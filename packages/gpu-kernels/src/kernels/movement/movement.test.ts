import { type DType, dtypes, elementCount, NdArray, type Shape, type TensorSpec } from "@skein/tensor-core";
import { hostArrayType, type KernelNode, operators } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { nodeOf, runPlan } from "../../../test/run-plan.ts";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { kernels } from "../../kernel-table.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { joinDims, widen } from "./view-copy.ts";

const software: DeviceFacts = { ...minimalDevice, software: true };

const nodeFor = (op: string, inputs: readonly TensorSpec[], params: KernelNode["params"]): KernelNode =>
  nodeOf(op, inputs, operators[op]!.infer(inputs, params), params);

const planOf = (node: KernelNode, facts: DeviceFacts, placed: readonly boolean[] = []): KernelPlan =>
  kernels[node.op]!.plan(node, facts, {}, placed);

const labels = (plan: KernelPlan): string[] => plan.passes.map(({ label }) => label);

const spec = (shape: Shape, dtype: DType = "f32"): TensorSpec => ({ dtype, shape });

const transposition = (shape: Shape, permutation: readonly number[], dtype: DType = "f32"): KernelNode =>
  nodeFor("transpose", [spec(shape, dtype)], { permutation: [...permutation] });

describe("plans of movement", () => {
  test("merge dimensions with contiguous steps", () => {
    expect(
      joinDims([
        { size: 2, stride: 15 },
        { size: 3, stride: 5 },
        { size: 1, stride: 7 },
        { size: 5, stride: 1 },
      ]),
    ).toEqual([{ size: 30, stride: 1 }]);
    expect(joinDims([])).toEqual([{ size: 1, stride: 1 }]);
  });

  test("move the widest units that the innermost run allows", () => {
    const rows = (size: number, stride: number, offset: number) => ({
      dims: [
        { size: 3, stride },
        { size, stride: 1 },
      ],
      offset,
    });
    expect(widen(rows(8, 16, 4), 4).bytes).toBe(16);
    expect(widen(rows(8, 16, 2), 4).bytes).toBe(8);
    expect(widen(rows(6, 16, 4), 4).bytes).toBe(8);
    expect(widen(rows(8, 15, 4), 4).bytes).toBe(4);
    expect(widen(rows(8, 16, 8), 1).bytes).toBe(8);
    expect(widen(rows(6, 15, 0), 2).bytes).toBe(2);
    // A single run may end at any element.
    expect(widen({ dims: [{ size: 7, stride: 1 }], offset: 8 }, 2).bytes).toBe(16);
    expect(widen({ dims: [{ size: 7, stride: 0 }], offset: 3 }, 1)).toEqual({
      dims: [{ size: 1, stride: 0 }],
      offset: 3,
      bytes: 16,
      repeated: 1,
    });
  });

  test("choose runs, tiles or blocks for a transposition", () => {
    expect(labels(planOf(transposition([2, 5, 3, 64], [0, 2, 1, 3]), minimalDevice))).toEqual(["transpose 16 bytes"]);
    expect(labels(planOf(transposition([64, 48], [1, 0]), minimalDevice))).toEqual(["transpose tiles of 32x32"]);
    expect(labels(planOf(transposition([64, 48], [1, 0]), software))).toEqual(["transpose blocks of 4x4"]);
    expect(labels(planOf(transposition([64, 47], [1, 0]), software))).toEqual(["transpose tiles of 32x32"]);
    expect(labels(planOf(transposition([4096, 8], [1, 0]), minimalDevice))).toEqual(["transpose tiles of 128x8"]);
    expect(labels(planOf(transposition([8, 4096], [1, 0]), minimalDevice))).toEqual(["transpose tiles of 8x128"]);
    expect(labels(planOf(transposition([64, 48], [1, 0], "f16"), minimalDevice))).toEqual(["transpose tiles of 64x64"]);
    expect(labels(planOf(transposition([300, 3], [1, 0]), minimalDevice))).toEqual(["transpose 4 bytes"]);
  });

  test("keep tiles within the minimum workgroup memory", () => {
    const side = fc.integer({ min: 4, max: 5000 });
    fc.assert(
      fc.property(side, side, fc.constantFrom(...dtypes), (rows, columns, dtype) => {
        for (const { code, workgroupSize } of planOf(transposition([rows, columns], [1, 0], dtype), minimalDevice)
          .passes) {
          const words = /tile: array<u32, (\d+)>/.exec(code)?.[1] ?? "0";
          expect(4 * Number(words)).toBeLessThanOrEqual(minimalDevice.maxWorkgroupBytes);
          expect(workgroupSize).toBeLessThanOrEqual(minimalDevice.maxWorkgroupSize);
        }
      }),
    );
  });

  test("concatenate operands in as few passes as bindings allow, without operands that are already in place", () => {
    const node = nodeFor(
      "concat",
      Array.from({ length: 16 }, () => spec([5])),
      { dim: 0 },
    );
    const bound = (placed: readonly boolean[]): number[] =>
      planOf(node, minimalDevice, placed).passes.map(({ bindings }) => bindings.length);
    expect(bound([])).toEqual([8, 8, 3]);
    expect(bound(node.inputs.map((_, i) => i === 3))).toEqual([4, 8, 6]);
    expect(bound(node.inputs.map((_, i) => i !== 3))).toEqual([2]);
  });
});

describe.skipIf(!hasAdapter)("movement on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const bitsOf = async (node: KernelNode, plan: KernelPlan, inputs: readonly NdArray[]): Promise<NdArray> => {
    const [output] = node.outputs;
    const [bytes] = await runPlan(backend.device, plan, inputs, node.outputs);
    return new NdArray(
      output!.dtype,
      output!.shape,
      new hostArrayType[output!.dtype](bytes!, 0, elementCount(output!.shape)),
    );
  };
  const different = (actual: readonly number[], expected: Float64Array): number =>
    actual.findIndex((number, i) => !Object.is(number, expected[i]));
  /**
   * Compares every number of an operator's result with the reference, on a GPU with minimum limits and on a software
   * adapter.
   */
  const check = async (op: string, params: KernelNode["params"], ...inputs: readonly NdArray[]): Promise<void> => {
    const node = nodeFor(op, inputs, params);
    if (elementCount(node.outputs[0]!.shape) === 0) return;
    const operands = inputs.map((input) => ({ spec: input, data: Float64Array.from(input.toNumbers()) }));
    const [expected] = operators[op]!.reference(operands, params, node.outputs);
    const plans = [minimalDevice, software].map((facts) => planOf(node, facts));
    const texts = plans.map((plan) => plan.passes.map(({ code }) => code).join());
    for (const plan of texts[0] === texts[1] ? plans.slice(1) : plans)
      expect(different((await bitsOf(node, plan, inputs)).toNumbers(), expected!)).toBe(-1);
  };

  const dtype = fc.constantFrom(...dtypes);
  const shape = fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1, maxLength: 4 });
  const many = { numRuns: 15 };

  test("any permutation of any shape", async () => {
    const permuted = shape.chain((sizes) =>
      fc.tuple(
        fc.constant(sizes),
        fc.shuffledSubarray(
          sizes.map((_, dim) => dim),
          { minLength: sizes.length, maxLength: sizes.length },
        ),
      ),
    );
    await fc.assert(
      fc.asyncProperty(permuted, dtype, async ([sizes, permutation], type) =>
        check("transpose", { permutation }, normalArray(sizes, 1, type)),
      ),
      many,
    );
  });

  test.each([
    [[70, 130], [1, 0], "f32"],
    [[129, 67], [1, 0], "f32"],
    [[128, 260], [1, 0], "f32"],
    [[5, 1000], [1, 0], "f32"],
    [[1000, 5], [1, 0], "f32"],
    [[3, 40, 5, 36], [3, 0, 2, 1], "f32"],
    [[2, 64, 3, 32], [0, 2, 3, 1], "f32"],
    [[70_000, 5, 4], [0, 2, 1], "f32"],
    [[130, 66], [1, 0], "f16"],
    [[4, 1000], [1, 0], "bf16"],
    [[3, 38, 2, 50], [3, 2, 0, 1], "f16"],
    [[68, 132], [1, 0], "u8"],
    [[1000, 4], [1, 0], "bool"],
    [[5, 16, 3, 20], [0, 3, 2, 1], "u8"],
  ] as const)("%j transposed by %j, %s", async (sizes, permutation, type) => {
    await check(
      "transpose",
      { permutation },
      type === "bool" ? normalArray(sizes, 1, type) : uniformArray(sizes, 0, 200, 1, type),
    );
  });

  test("any slice", async () => {
    const dim = fc.record({
      before: fc.nat(4),
      count: fc.integer({ min: 1, max: 9 }),
      step: fc.integer({ min: 1, max: 3 }),
      after: fc.nat(4),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(dim, { minLength: 1, maxLength: 3 }), dtype, async (dims, type) => {
        const ends = dims.map(({ before, count, step }) => before + (count - 1) * step + 1);
        const sizes = dims.map(({ after }, i) => ends[i]! + after);
        await check(
          "slice",
          { starts: dims.map(({ before }) => before), ends, strides: dims.map(({ step }) => step) },
          normalArray(sizes, 1, type),
        );
      }),
      many,
    );
  });

  test("any padding", async () => {
    const dim = fc.record({ size: fc.nat(9), low: fc.nat(4), high: fc.nat(4), gap: fc.constantFrom(0, 0, 0, 1, 2) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(dim, { minLength: 1, maxLength: 3 }),
        dtype,
        fc.constantFrom(0, 1),
        async (dims, type, value) => {
          const params = {
            low: dims.map(({ low }) => low),
            high: dims.map(({ high }) => high),
            interior: dims.map(({ gap }) => gap),
            value,
          };
          // biome-ignore format: one call
          await check("pad", params, normalArray(dims.map(({ size }) => size), 1, type));
        },
      ),
      many,
    );
  });

  test("any broadcast", async () => {
    const dim = fc.record({ size: fc.integer({ min: 1, max: 9 }), stretched: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(dim, { maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 2 }),
        dtype,
        async (dims, lead, type) => {
          const from = dims.map(({ size, stretched }) => (stretched ? 1 : size));
          await check(
            "broadcast-to",
            { shape: [...lead, ...dims.map(({ size }) => size)] },
            normalArray(from, 1, type),
          );
        },
      ),
      many,
    );
  });

  test("any operands concatenated along any dimension", async () => {
    const widths = fc.array(fc.nat(9), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        widths,
        fc.integer({ min: 1, max: 4 }),
        dtype,
        async (rows, sizes, inner, type) => {
          await check("concat", { dim: 1 }, ...sizes.map((width, i) => normalArray([rows, width, inner], i, type)));
        },
      ),
      many,
    );
  });

  test("operands that are already in place stay unchanged, next to operands that share their words", async () => {
    const sizes = fc.array(fc.tuple(fc.nat(9), fc.boolean()), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(sizes, dtype, async (operands, type) => {
        const inputs = operands.map(([size], i) => normalArray([size], i, type));
        const node = nodeFor("concat", inputs, { dim: 0 });
        const placed = operands.map(([, inPlace]) => inPlace);
        const plan = planOf(node, minimalDevice, placed);
        if (plan.passes.length === 0) return;
        const bytes = Buffer.from((await bitsOf(node, plan, inputs)).bytes()).toString("hex");
        // Before the run, every byte of the output was 0xff.
        const expected = inputs.map((input, i) =>
          placed[i]! ? Buffer.alloc(input.bytes().byteLength, 0xff) : Buffer.from(input.bytes()),
        );
        expect(bytes).toBe(Buffer.concat(expected).toString("hex"));
      }),
      many,
    );
  });

  test("keeps the bits of NaNs and of subnormals", async () => {
    const patterns = Uint32Array.from(
      { length: 35 },
      (_, i) => [0x7f800001, 0xffc12345, 0x00000001, 0x80000000, 0x007fffff][i % 5]! + 256 * i,
    );
    const x = new NdArray("f32", [5, 7], new Float32Array(patterns.buffer));
    const node = nodeFor("transpose", [x], { permutation: [1, 0] });
    const moved = new Uint32Array((await bitsOf(node, planOf(node, minimalDevice), [x])).bytes().slice().buffer);
    expect([...moved]).toEqual(Array.from({ length: 35 }, (_, i) => patterns[(i % 5) * 7 + Math.floor(i / 5)]!));
  });
});
