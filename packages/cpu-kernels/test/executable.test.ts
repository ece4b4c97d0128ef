import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import { add, jit, multiply, NdArray, type Tensor } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";

const backendOf = () => createCpuBackend({ memory: createSharedMemory(256 * 2 ** 20) });

describe("executable", () => {
  test("computes on host arrays and releases every byte", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor, y: Tensor) => ({ sum: add(x, y), product: multiply(x, y) }), backend);
    const result = await f(NdArray.from([1, 2, 3]), NdArray.from([4, 5, 6]));
    expect((await backend.download(result.sum)).toNumbers()).toEqual([5, 7, 9]);
    expect((await backend.download(result.product)).toNumbers()).toEqual([4, 10, 18]);
    backend.free(result.sum);
    backend.free(result.product);
    f.release();
    expect(backend.arena.bytesInUse).toBe(0);
  });

  test("a donated array is updated in place and cannot be read again", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor) => add(x, 1), backend, { donate: [0] });
    const first = backend.upload(NdArray.from([1, 2, 3]));
    const second = await f(first);
    const held = backend.arena.bytesInUse;
    const third = await f(second);
    expect(backend.arena.bytesInUse).toBe(held);
    expect((await backend.download(third)).toNumbers()).toEqual([3, 4, 5]);
    await expect(backend.download(first)).rejects.toThrow(/donated/);
  });

  test("an array that is not donated keeps its values", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor) => multiply(add(x, 1), 2), backend);
    const x = backend.upload(NdArray.from([1, 2, 3]));
    await f(x);
    expect((await backend.download(x)).toNumbers()).toEqual([1, 2, 3]);
  });

  test("the same array cannot be donated and passed again", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor, y: Tensor) => add(x, y), backend, { donate: [0] });
    const x = backend.upload(NdArray.from([1]));
    await expect(f(x, x)).rejects.toThrow(/given away/);
  });

  test("a run without memory for all of its outputs releases the outputs already allocated", async () => {
    const backend = await createCpuBackend({ memory: createSharedMemory(20 * 2 ** 20) });
    const x = backend.upload(NdArray.zeros("f32", [2 ** 20]));
    const f = jit((y: Tensor) => [add(y, 1), add(y, 2), add(y, 3)], backend);
    await expect(f(x)).rejects.toThrow(/shared memory/);
    const held = backend.arena.bytesInUse;
    await expect(f(x)).rejects.toThrow(/shared memory/);
    expect(backend.arena.bytesInUse).toBe(held);
    f.release();
    expect(backend.arena.bytesInUse).toBe(4 * 2 ** 20);
  });

  test("an input may be returned unchanged, twice", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor) => [x, x, add(x, 1)], backend);
    const [a, b, c] = await f(NdArray.from([1, 2]));
    for (const [array, values] of [
      [a, [1, 2]],
      [b, [1, 2]],
      [c, [2, 3]],
    ] as const) {
      expect((await backend.download(array!)).toNumbers()).toEqual(values);
    }
  });

  test("memory stays flat over many runs", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor, y: Tensor) => add(x, multiply(y, 0.5)), backend, { donate: [0] });
    const y = NdArray.from(new Float32Array(1000).fill(1));
    let x = await f(NdArray.zeros("f32", [1000]), y);
    const held = backend.arena.bytesInUse;
    const reserved = backend.arena.bytesReserved;
    for (let step = 0; step < 500; step++) x = await f(x, y);
    expect([backend.arena.bytesInUse, backend.arena.bytesReserved]).toEqual([held, reserved]);
    expect((await backend.download(x)).toNumbers()[999]).toBe(250.5);
  });

  test("rejects arithmetic on a storage dtype when the function is traced", async () => {
    const backend = await backendOf();
    const f = jit((x: Tensor) => add(x, x), backend);
    await expect(f(NdArray.zeros("f16", [2]))).rejects.toThrow(/dtype f16 is not supported.*cast/);
  });
});
