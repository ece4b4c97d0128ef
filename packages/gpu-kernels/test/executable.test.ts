import { createCpuBackend } from "@skein/cpu-kernels";
import {
  add,
  cast,
  concat,
  cumsum,
  exp,
  jit,
  matmul,
  multiply,
  NdArray,
  reshape,
  slice,
  softmax,
  SpanRecorder,
  subtract,
  sum,
  type Tensor,
  trace,
  transpose,
} from "@skein/tensor-core";
import { ArrayLedger, interpretWorld, optimize, planMemory } from "@skein/tensor-core/backend";
import { firstDifference, normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ArrayBlock, releaseBlock, uploadBytes } from "../src/array-block.ts";
import { BufferPool } from "../src/buffer-pool.ts";
import { WebGpuExecutable } from "../src/executable.ts";
import { plainHostMemory } from "../src/host-transfer.ts";
import type { WebGpuBackend } from "../src/index.ts";
import { PipelineCache } from "../src/pipeline-cache.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

describe.skipIf(!hasAdapter)("executable", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test("computes on host arrays and releases every byte", async () => {
    const held = backend.bytesInUse();
    const f = jit((x: Tensor, y: Tensor) => ({ sum: add(x, y), product: multiply(x, y) }), backend);
    const result = await f(NdArray.from([1, 2, 3]), NdArray.from([4, 5, 6]));
    expect((await backend.download(result.sum)).toNumbers()).toEqual([5, 7, 9]);
    expect((await backend.download(result.product)).toNumbers()).toEqual([4, 10, 18]);
    backend.free(result.sum);
    backend.free(result.product);
    f.release();
    expect(backend.bytesInUse()).toBe(held);
  });

  test("a donated array is updated in place and cannot be read again", async () => {
    const f = jit((x: Tensor) => add(x, 1), backend, { donate: [0] });
    const first = backend.upload(NdArray.from([1, 2, 3]));
    const second = await f(first);
    const held = backend.bytesInUse();
    const third = await f(second);
    expect(backend.bytesInUse()).toBe(held);
    expect((await backend.download(third)).toNumbers()).toEqual([3, 4, 5]);
    await expect(backend.download(first)).rejects.toThrow(/donated/);
    await expect(f(first)).rejects.toThrow(/donated/);
    backend.free(third);
    f.release();
  });

  test("releases a donated array that no output reuses", async () => {
    const f = jit((x: Tensor) => sum(x), backend, { donate: [0] });
    const x = backend.upload(NdArray.zeros("f32", [100_000]));
    const held = backend.bytesInUse();
    const total = await f(x);
    expect(backend.bytesInUse()).toBeLessThan(held);
    backend.free(total);
    f.release();
  });

  test("an array that is not donated keeps its values", async () => {
    const f = jit((x: Tensor) => multiply(add(x, 1), 2), backend);
    const x = backend.upload(NdArray.from([1, 2, 3]));
    await f(x);
    expect((await backend.download(x)).toNumbers()).toEqual([1, 2, 3]);
  });

  test("the same array cannot be donated and passed again", async () => {
    const f = jit((x: Tensor, y: Tensor) => add(x, y), backend, { donate: [0] });
    const x = backend.upload(NdArray.from([1]));
    await expect(f(x, x)).rejects.toThrow(/given away/);
    expect((await backend.download(x)).toNumbers()).toEqual([1]);
  });

  test("the same array may be passed twice if it is only read", async () => {
    const f = jit((x: Tensor, y: Tensor) => [add(x, y), matmul(x, y)], backend);
    const x = backend.upload(NdArray.from([1, 2, 3, 4], [2, 2]));
    const [total, product] = await f(x, x);
    expect((await backend.download(total!)).toNumbers()).toEqual([2, 4, 6, 8]);
    expect((await backend.download(product!)).toNumbers()).toEqual([7, 10, 15, 22]);
  });

  test("an input may be returned unchanged, twice", async () => {
    const f = jit((x: Tensor) => [x, x, add(x, 1)], backend);
    for (const donate of [[], [0]]) {
      const g = donate.length === 0 ? f : jit((x: Tensor) => [x, x, add(x, 1)], backend, { donate });
      const [a, b, c] = await g(NdArray.from([1, 2]));
      for (const [array, values] of [
        [a, [1, 2]],
        [b, [1, 2]],
        [c, [2, 3]],
      ] as const)
        expect((await backend.download(array!)).toNumbers()).toEqual(values);
    }
  });

  test("rejects a run of an executable that was released or is still running", async () => {
    const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [4] }] as never);
    const executable = backend.compile(graph);
    const x = backend.upload(NdArray.zeros("f32", [4]));
    const first = executable.run([x]);
    await expect(executable.run([x])).rejects.toThrow(/still running/);
    expect((await backend.download((await first)[0]!)).toNumbers()).toEqual([1, 1, 1, 1]);
    executable.release();
    executable.release();
    await expect(executable.run([x])).rejects.toThrow(/released/);
    await expect(backend.compile(graph).run([])).rejects.toThrow(/1 inputs, 0 arrays/);
  });

  test("rejects arrays of another backend, and two backends compute at the same time", async () => {
    const other = await openBackend();
    const cpu = await createCpuBackend();
    const f = jit((x: Tensor) => add(x, 1), backend);
    const g = jit((x: Tensor) => add(x, 2), other);
    for (const foreign of [other, cpu])
      await expect(f(foreign.upload(NdArray.from([1])))).rejects.toThrow(/another backend/);
    const [a, b] = await Promise.all([f(NdArray.from([1])), g(NdArray.from([1]))]);
    expect((await backend.download(a)).toNumbers()).toEqual([2]);
    expect((await other.download(b)).toNumbers()).toEqual([3]);
    other.close();
    expect((await backend.download(await f(NdArray.from([5])))).toNumbers()).toEqual([6]);
  });

  test("supports tensors without elements as inputs, intermediates and outputs", async () => {
    const f = jit(
      (x: Tensor, y: Tensor) => [
        add(x, 1),
        softmax(x),
        sum(x),
        concat([x, y], { dim: 0 }),
        matmul(reshape(x, [3, 0]), x),
      ],
      backend,
    );
    const results = await f(NdArray.zeros("f32", [0, 3]), NdArray.from([1, 2, 3], [1, 3]));
    const values = await Promise.all(results.map(async (array) => (await backend.download(array)).toNumbers()));
    expect(values).toEqual([[], [], [0], [1, 2, 3], [0, 0, 0, 0, 0, 0, 0, 0, 0]]);
    const empty = backend.upload(NdArray.zeros("bf16", [0]));
    expect((await backend.download(empty)).toNumbers()).toEqual([]);
  });

  test("keeps all elements if sizes are not multiples of a word", async () => {
    for (const dtype of ["u8", "bool", "f16", "bf16"] as const)
      for (const count of [1, 3, 5, 4097]) {
        const array = NdArray.from(
          Array.from({ length: count }, (_, i) => (dtype === "bool" ? i % 2 : i % 100)),
          [count],
          dtype,
        );
        expect((await backend.download(backend.upload(array))).toNumbers()).toEqual(array.toNumbers());
      }
  });

  test("rejects a tensor beyond the binding size when it is compiled, with the number", () => {
    const { maxBindingBytes } = backend.facts;
    const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [maxBindingBytes / 4 + 1] }] as never);
    const held = backend.bytesReserved();
    expect(() => backend.compile(graph)).toThrow(
      new RegExp(`${maxBindingBytes + 4} bytes.*${maxBindingBytes} \\(maxStorageBufferBindingSize\\)`),
    );
    expect(backend.bytesReserved()).toBe(held);
  });

  test("a value that is partly packed with others keeps its own last elements", async () => {
    const f = jit((x: Tensor, z: Tensor) => {
      const e = cumsum(x);
      return [concat([slice(e, [0], [5]), z], { dim: 0 }), e];
    }, backend);
    const [joined, e] = await f(NdArray.from([1, 2, 3, 4, 5, 6, 7]), NdArray.from([100, 200, 300]));
    expect((await backend.download(e!)).toNumbers()).toEqual([1, 3, 6, 10, 15, 21, 28]);
    expect((await backend.download(joined!)).toNumbers()).toEqual([1, 3, 6, 10, 15, 100, 200, 300]);
  });

  test("stores a product of transposed f16 operands in the requested dtype", async () => {
    const f = jit((a: Tensor) => matmul(transpose(cast(a, "f16")), cast(a, "f16"), { resultDtype: "f32" }), backend);
    const y = await f(NdArray.from([300, 300, 300, 300], [2, 2]));
    // larger than the maximum of f16, 65,504
    expect([y.dtype, (await backend.download(y)).toNumbers()]).toEqual(["f32", new Array(4).fill(180_000)]);
  });

  /** Computes a result from several values that must be in memory at the same time. */
  const wide = (x: Tensor, w: Tensor): Tensor => {
    const parts = [1, 2, 3, 4, 5, 6].map((k) => matmul(multiply(x, k), w));
    return parts.reduce((total, part, i) => add(total, multiply(part, matmul(parts[(i + 3) % 6]!, w))));
  };
  const wideInputs = [normalArray([64, 64], 1), normalArray([64, 64], 2)];
  const wideReference = (): Float64Array =>
    interpretWorld(trace(wide, wideInputs as never).graph, [
      wideInputs.map((array) => ({
        spec: { dtype: array.dtype, shape: array.shape },
        data: Float64Array.from(array.data),
      })),
    ])[0]![0]!.data;

  test("gives the same results with a workspace of several slabs", async () => {
    const { device } = backend;
    const graph = optimize(trace(wide, wideInputs as never).graph);
    const options = { alignment: 256, viewAlignment: device.facts.bindingAlignment };
    const [one, several] = [
      planMemory(graph, options),
      planMemory(graph, { ...options, maxSlabBytes: 2 * 64 * 64 * 4 }),
    ];
    expect(one.slabBytes).toHaveLength(1);
    expect(several.slabBytes.length).toBeGreaterThan(1);
    const results: number[][] = [];
    for (const plan of [one, several]) {
      const pool = new BufferPool(device);
      const ledger = new ArrayLedger<ArrayBlock>((block) => releaseBlock(pool, block));
      const pipelines = new PipelineCache(device);
      const executable = new WebGpuExecutable({
        graph,
        plan,
        device,
        pool,
        pipelines,
        ledger,
        hostMemory: plainHostMemory,
        choices: {},
        donate: [],
      });
      const inputs = wideInputs.map((array) =>
        ledger.open({ dtype: array.dtype, shape: array.shape }, uploadBytes(device, pool, array.bytes())),
      );
      const [output] = await executable.run(inputs);
      const staging = device.gpu.createBuffer({ size: 64 * 64 * 4, usage: 0x01 | 0x08 }); // MAP_READ | COPY_DST
      const encoder = device.gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(await ledger.own(output!).memory.buffer, 0, staging, 0, staging.size);
      device.gpu.queue.submit([encoder.finish()]);
      await staging.mapAsync(1); // MAP_READ
      results.push([...new Float32Array(staging.getMappedRange().slice(0))]);
      executable.release();
    }
    expect(results[1]).toEqual(results[0]);
    expect(firstDifference(results[0]!, wideReference(), { absolute: 1e-1, relative: 1e-4 })).toBeUndefined();
  });

  test("gives the same results with sliced dispatches, also in later dispatches", async () => {
    const cut = await openBackend({ choices: { workPerSubmission: 50_000 } });
    const run = async (on: WebGpuBackend): Promise<number[]> => {
      const f = jit(
        (x: Tensor, w: Tensor) => [wide(x, w), softmax(wide(x, w)), sum(exp(multiply(x, 0.01)), { dims: 1 })],
        on,
      );
      const results = await f(...(wideInputs as [NdArray, NdArray]));
      return (await Promise.all(results.map(async (array) => (await on.download(array)).toNumbers()))).flat();
    };
    const [whole, sliced] = [await run(backend), await run(cut)];
    expect(sliced).toEqual(whole);
    cut.close();
  });

  test("a profile contains every kernel in order, with times", async () => {
    const spanSink = new SpanRecorder();
    const f = jit((x: Tensor, w: Tensor) => sum(softmax(subtract(matmul(x, w), 1))), backend, { spanSink });
    const before = spanSink.now();
    await f(...(wideInputs as [NdArray, NdArray]));
    const compile = spanSink.spans.filter(({ track }) => track === "host").map(({ name }) => name);
    expect(compile).toEqual([
      "trace",
      "passes",
      "optimize",
      "plan memory",
      "bind kernels",
      "compile for webgpu",
      "compile",
      "compile shaders",
    ]);
    const spans = spanSink.spans.filter(({ track }) => track === "compute");
    expect(spans.every(({ startSeconds, endSeconds }) => endSeconds > startSeconds)).toBe(true);
    expect(spans.map(({ startSeconds }) => startSeconds)).toEqual(
      spans.map(({ startSeconds }) => startSeconds).sort((a, b) => a - b),
    );
    expect(spans[0]!.startSeconds).toBeGreaterThanOrEqual(before);
    if (!backend.facts.timestamps) return;
    const names = [...new Set(spans.map(({ name }) => name))];
    expect(names).toEqual(["matmul", "fused", "softmax", "sum"]);
    // Dawn rounds to 2¹⁶ ns by default.
    const rounded = spans.map(({ startSeconds, endSeconds }) => ((endSeconds - startSeconds) * 1e9) / 2 ** 16);
    expect(rounded.some((count) => Math.abs(count - Math.round(count)) > 1e-3)).toBe(true);
  });

  test("a run without memory for all of its outputs releases the outputs already allocated", async () => {
    const { device } = backend;
    const pool = new BufferPool(device);
    const ledger = new ArrayLedger<ArrayBlock>((block) => releaseBlock(pool, block));
    const graph = optimize(
      trace((x: Tensor) => [add(x, 1), add(x, 2)], [{ dtype: "f32", shape: [1000] }] as never).graph,
    );
    const plan = planMemory(graph, { alignment: 256, viewAlignment: device.facts.bindingAlignment });
    const pipelines = new PipelineCache(device);
    const parts = { graph, device, pool, pipelines, ledger, hostMemory: plainHostMemory, choices: {}, donate: [] };
    const tooLarge = { ...plan, outputBytes: [plan.outputBytes[0]!, 2 * device.facts.maxBufferBytes] };
    const executable = new WebGpuExecutable({ ...parts, plan: tooLarge });
    const x = ledger.open({ dtype: "f32", shape: [1000] }, uploadBytes(device, pool, new Uint8Array(4000)));
    const held = pool.bytesInUse;
    await expect(executable.run([x])).rejects.toThrow(/maxBufferSize/);
    expect(pool.bytesInUse).toBe(held);
    executable.release();
  });
});
