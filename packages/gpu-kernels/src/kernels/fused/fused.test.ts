import {
  add,
  cast,
  evaluate,
  multiply,
  NdArray,
  type Shape,
  subtract,
  type Tensor,
  type TensorSpec,
  trace,
  where,
} from "@skein/tensor-core";
import { encodeNumber, type FusedParams, type KernelNode, kernelNodeOf, optimize } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { nodeOf, runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { fusedPass } from "./fused.ts";

const strideList = (...views: number[][]): FusedParams["views"] => views.map((strides) => ({ strides }));

/** Returns a program of `x0 + x1`, with operands read through views. */
const sumOf = (shape: Shape, views: FusedParams["views"], operands: readonly TensorSpec[]) =>
  fusedPass(
    nodeOf("fused", operands, [{ dtype: "f32", shape }], {
      shape: [...shape],
      views,
      instructions: [{ op: "add", args: [0, 1], dtype: "f32", params: {} }],
      results: [2],
    } satisfies FusedParams),
  );

const f32 = (...shape: number[]): TensorSpec => ({ dtype: "f32", shape });

/** Counts the divisions in `code`, except divisions by 4, which are shifts. */
const divisions = (code: string): number => [...code.matchAll(/[/%] (\d+)u/g)].length;

describe("the shader of a program", () => {
  test("is the same for dense operands of any length", () => {
    const passes = [8, 5000].map((n) => sumOf([n], strideList([1], [1]), [f32(n), f32(n)]));
    expect(passes[0]!.code).toBe(passes[1]!.code);
    expect(passes[0]!.sizes).toEqual({ vectors: 2, never: 0 });
    expect(divisions(passes[0]!.code)).toBe(0);
  });

  test("reads a bias with one division for four elements, and any number of rows with one shader", () => {
    const passes = [3, 300].map((rows) => sumOf([rows, 64], strideList([64, 1], [0, 1]), [f32(rows, 64), f32(64)]));
    expect(passes[0]!.code).toBe(passes[1]!.code);
    expect(passes[0]!.bindings[1]!.type).toBe("array<vec4<f32>>");
    expect(divisions(passes[0]!.code)).toBe(1);
  });

  test("reads a value per row once for four elements", () => {
    const { code } = sumOf([300, 64], strideList([64, 1], [1, 0]), [f32(300, 64), f32(300, 1)]);
    expect(divisions(code)).toBe(1);
    expect([...code.matchAll(/load_x1\(/g)]).toHaveLength(2); // the definition and one call
  });

  test("reads one value as one value", () => {
    const { code } = sumOf([300], strideList([1], [0]), [f32(300), f32()]);
    expect(divisions(code)).toBe(0);
    expect([...code.matchAll(/load_x1\(/g)]).toHaveLength(2);
  });

  test("finds four adjacent elements across the end of a row with one division", () => {
    const { code } = sumOf([300, 63], strideList([63, 1], [0, 1]), [f32(300, 63), f32(63)]);
    expect(divisions(code)).toBe(1);
  });

  test("binds at most the default limit of WebGPU, for any graph", () => {
    const inputs = Array.from({ length: 30 }, (_, i) => normalArray([64], i + 1));
    const { graph } = trace(
      (...x: Tensor[]) => [x.reduce((a, b) => add(a, b)), ...x.slice(0, 12).map((a, i) => multiply(a, x[29 - i]!))],
      inputs as never,
    );
    const nodes = optimize(graph, { fuse: { maxOperands: 8 } });
    const passes = nodes.nodes
      .filter(({ op }) => op === "fused")
      .map((node) => fusedPass(kernelNodeOf(nodes, node) as unknown as KernelNode<FusedParams>));
    expect(passes.length).toBeGreaterThan(3);
    for (const { bindings, workgroupSize } of passes) {
      expect(bindings.length).toBeLessThanOrEqual(8);
      expect(workgroupSize).toBeLessThanOrEqual(256);
    }
    expect(Math.max(...passes.map(({ bindings }) => bindings.length))).toBeGreaterThan(6);
  });

  test("contains no infinities and NaN at compile time", () => {
    const { code } = fusedPass(
      nodeOf("fused", [], [f32(4)], {
        shape: [4],
        views: [],
        instructions: [NaN, Infinity, -Infinity, -0].map((value) => ({
          op: "constant",
          args: [],
          dtype: "f32",
          params: { value: encodeNumber(value) },
        })),
        results: [0],
      } satisfies FusedParams),
    );
    expect(code).not.toMatch(/NaN|Infinity|vec4<f32>\(-?0\.?0?\)/);
    expect([...code.matchAll(/sizes\.never/g)].length).toBeGreaterThanOrEqual(3);
  });
});

describe.skipIf(!hasAdapter)("programs on WebGPU", () => {
  let backend: WebGpuBackend;
  let cpu: Awaited<ReturnType<typeof createCpuBackend>>;
  beforeAll(async () => {
    backend = await openBackend();
    cpu = await createCpuBackend({ memory: createSharedMemory(256 * 2 ** 20) });
  });
  afterAll(() => backend.close());

  const agree = async (fn: (...x: Tensor[]) => readonly Tensor[], inputs: readonly NdArray[]): Promise<void> => {
    const ours = (await evaluate(fn, backend)(...inputs)) as readonly NdArray[];
    const theirs = (await evaluate(fn, cpu)(...inputs)) as readonly NdArray[];
    ours.forEach((array, i) => expect(array.toNumbers()).toEqual(theirs[i]!.toNumbers()));
  };

  // Rows of 1 to 13 columns, complete vectors or not; operands broadcast along every subset of three dimensions.
  const columns = Array.from({ length: 13 }, (_, i) => i + 1);
  test.each(columns)("operands broadcast along any dimensions, %i columns", async (last) => {
    const shape = [3, 5, last];
    const inputs = [normalArray(shape, 1)];
    for (let subset = 1; subset < 8; subset++)
      inputs.push(
        normalArray(
          shape.map((size, dim) => ((subset >> dim) & 1 ? 1 : size)),
          subset + 1,
        ),
      );
    await agree((...x) => x.slice(1).map((other) => subtract(x[0]!, other)), inputs);
  });

  test.each([8, 12, 7])("every storage dtype, dense and broadcast, %i columns", async (last) => {
    const dtypes = ["f16", "bf16", "u8", "bool", "i32", "u32"] as const;
    const inputs = dtypes.flatMap((dtype, i) => [
      normalArray([5, last], i, dtype),
      normalArray([last], i + 9, dtype),
      normalArray([5, 1], i + 19, dtype),
    ]);
    const fn = (...x: Tensor[]): Tensor[] =>
      dtypes.map((dtype, i) => {
        const [dense, row, column] = x.slice(3 * i, 3 * i + 3) as [Tensor, Tensor, Tensor];
        const total = add(add(cast(dense, "f32"), cast(row, "f32")), cast(column, "f32"));
        return cast(total, dtype);
      });
    await agree(fn, inputs);
  });

  test("splits a program with more operands than bindings", async () => {
    const inputs = Array.from({ length: 40 }, (_, i) => normalArray([1027], i + 1));
    await agree((...x) => [x.reduce((a, b, i) => (i % 3 === 0 ? subtract(a, b) : add(a, b)))], inputs);
    const conditions = Array.from({ length: 12 }, (_, i) => normalArray([513], i + 50, "bool"));
    const values = Array.from({ length: 24 }, (_, i) => normalArray([513], i + 70));
    await agree(
      (...x) => conditions.map((_, i) => where(x[i]!, x[12 + 2 * i]!, x[13 + 2 * i]!)),
      [...conditions, ...values],
    );
  });

  test("more than 65,535 workgroups", async () => {
    const count = 65_536 * 128 * 4 + 5;
    const bytes = new Uint8Array(count).map((_, i) => i % 251);
    const [x, y]: readonly TensorSpec[] = [
      { dtype: "u8", shape: [count] },
      { dtype: "bool", shape: [count] },
    ];
    const params = {
      shape: [count],
      views: strideList([1]),
      instructions: [{ op: "cast", args: [0], dtype: "bool", params: { dtype: "bool" } }],
      results: [1],
    } satisfies FusedParams;
    const pass = fusedPass(nodeOf("fused", [x!], [y!], params));
    expect(pass.groups).toBeGreaterThan(65_535);
    const [result] = await runPlan(backend.device, { passes: [pass] }, [new NdArray("u8", [count], bytes)], [y!]);
    expect(new Uint8Array(result!).findIndex((bit, i) => bit !== (i % 251 === 0 ? 0 : 1))).toBe(-1);
  });

  test("the same bits, run after run", async () => {
    const inputs = [normalArray([301, 77], 1), normalArray([77], 2)];
    const fn = (x: Tensor, y: Tensor): Tensor => multiply(add(x, y), x);
    const [first, second] = [
      await evaluate(fn, backend)(...(inputs as [NdArray, NdArray])),
      await evaluate(fn, backend)(...(inputs as [NdArray, NdArray])),
    ];
    expect(first.bytes()).toEqual(second.bytes());
  });
});
