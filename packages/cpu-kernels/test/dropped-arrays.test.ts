import {
  add,
  applyUpdates,
  type DeviceArray,
  jit,
  matmul,
  mean,
  momentum,
  NdArray,
  square,
  subtract,
  sum,
  type Tensor,
  valueAndGrad,
  zeros,
} from "@skein/tensor-core";
import { expect, onTestFinished, test, vi } from "vitest";
import { createSharedMemory } from "../src/arena.ts";
import { type CpuBackend, createCpuBackend } from "../src/cpu-backend.ts";

const mebibyte = 2 ** 20;

const openBackend = (mebibytes: number, threads = 1): Promise<CpuBackend> =>
  createCpuBackend({ memory: createSharedMemory(mebibytes * mebibyte), threads });

/** Runs the loop in the README of tensor-core, with a state of `2 * rows * columns` f32. */
const readmeLoop = async (
  backend: CpuBackend,
  { rows, columns, steps, donate = [] }: { rows: number; columns: number; steps: number; donate?: readonly number[] },
): Promise<void> => {
  const optimizer = momentum({ learningRate: 0.05 });
  const loss = (weight: Tensor, x: Tensor, y: Tensor) => mean(square(subtract(matmul(x, weight), y)));
  const init = () => {
    const weight = zeros([rows, columns]);
    return { weight, optim: optimizer.init(weight) };
  };
  const step = ({ weight, optim }: ReturnType<typeof init>, x: Tensor, y: Tensor) => {
    const [value, gradient] = valueAndGrad(loss)(weight, x, y);
    const [updates, next] = optimizer.update(gradient, optim, { params: weight });
    return { state: { weight: applyUpdates(weight, updates), optim: next }, value };
  };
  const x = NdArray.from(
    Array.from({ length: 4 * rows }, (_, i) => (i % 7) / 7),
    [4, rows],
  );
  const y = NdArray.from(
    Array.from({ length: 4 * columns }, (_, i) => (i % 5) / 5),
    [4, columns],
  );
  const train = jit(step, backend, { donate });
  let state = await jit(init, backend)();
  for (let i = 0; i < steps; i++) {
    const { state: next, value } = await train(state, x, y);
    state = next;
    if (donate.length > 0) backend.free(value);
  }
  expect((await backend.download(state.weight)).toNumbers().every(Number.isFinite)).toBe(true);
};

test("a loop that drops its state at each step runs in the memory of five states", async () => {
  const backend = await openBackend(8);
  await readmeLoop(backend, { rows: 200, columns: 400, steps: 100 }); // 128 MB in total
  expect(backend.memory.buffer.byteLength).toBeLessThanOrEqual(8 * mebibyte);
});

test("runs collect dropped results long before the memory is full", async () => {
  const backend = await createCpuBackend();
  const f = jit((x: Tensor) => ({ y: add(x, 1), total: sum(x) }), backend);
  const x = NdArray.zeros("f32", [mebibyte]);
  for (let i = 0; i < 200; i++) expect((await backend.download((await f(x)).total)).item()).toBe(0); // 800 MiB in total
  expect(backend.arena.peakBytesInUse).toBeLessThan(192 * mebibyte);
});

test("dropped small results do not keep blocks or objects for long", async () => {
  const backend = await createCpuBackend();
  const f = jit((x: Tensor) => add(x, 1), backend);
  const x = backend.upload(NdArray.zeros("f32", []));
  for (let i = 0; i < 100_000; i++) await f(x);
  expect(backend.arena.peakBytesInUse).toBeLessThan(70_000 * 64);
});

test("uploads of arguments and workspaces of compiled functions also wait for dropped arrays", async () => {
  const backend = await openBackend(12);
  const big = NdArray.zeros("f32", [mebibyte / 2]);
  const total = jit(sum as (x: Tensor) => Tensor, backend);
  for (let i = 0; i < 10; i++) {
    await backend.reclaim!(); // `upload` is synchronous, so it cannot wait for memory
    // Three dropped arrays of 2 MiB, then calls whose arguments and workspaces only fit after these arrays are
    // collected.
    for (let dropped = 0; dropped < 3; dropped++) backend.upload(big);
    expect((await backend.download(await total(big))).item()).toBe(0);
    const roots = jit((x: Tensor) => sum(square(matmul(x, x))), backend);
    expect((await backend.download(await roots(NdArray.zeros("f32", [600, 600])))).item()).toBe(0);
  }
});

test("a dropped compiled function releases its workspace", async () => {
  const backend = await openBackend(16);
  for (let i = 0; i < 20; i++) {
    const f = jit((x: Tensor) => sum(square(matmul(x, x))), backend);
    backend.free(await f(NdArray.zeros("f32", [512, 512])));
  }
  await backend.reclaim!();
  expect(backend.arena.bytesInUse).toBeLessThan(4 * mebibyte); // the engine may still reference the last array
});

test("donated, freed and disposed arrays leave nothing to collect", async () => {
  const backend = await openBackend(8);
  backend.reclaim = () => Promise.reject(new Error("nothing is to be collected"));
  await readmeLoop(backend, { rows: 200, columns: 400, steps: 50, donate: [0] });
  const x = backend.upload(NdArray.zeros("f32", [mebibyte / 4]));
  const f = jit((a: Tensor) => add(a, 1), backend);
  const before = backend.arena.bytesInUse;
  for (let i = 0; i < 20; i++) {
    using y = await f(x);
    expect(`${y}`).toBe("DeviceArray f32[262144] (owned)");
  }
  for (let i = 0; i < 20; i++) backend.free(await f(x));
  expect(backend.arena.bytesInUse - before).toBeLessThan(mebibyte); // the workspace of f
});

test("a step that donates its state and frees its loss registers nothing with the engine, for any number of steps", async () => {
  const backend = await openBackend(8);
  const register = vi.spyOn(FinalizationRegistry.prototype, "register");
  onTestFinished(() => register.mockRestore());
  const registrationsOf = async (steps: number): Promise<number> => {
    register.mockClear();
    await readmeLoop(backend, { rows: 4, columns: 4, steps, donate: [0] });
    return register.mock.calls.length;
  };
  await registrationsOf(50);
  expect(await registrationsOf(500)).toBeLessThanOrEqual(await registrationsOf(50));
});

test("reports the owners of memory and the cure if a result does not fit next to arrays in use", async () => {
  const backend = await openBackend(8);
  const kept: DeviceArray[] = [];
  const x = backend.upload(NdArray.zeros("f32", [mebibyte / 2]));
  const f = jit((a: Tensor) => add(a, 1), backend);
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 8; i++) kept.push(await f(x));
  };
  await expect(fill()).rejects.toThrow(
    /^2097152 bytes were asked for, but 2 live arrays hold 4194304 bytes, .*`using`.*`backend\.free\(array\)`.*jit\(step, backend, \{ donate: \[0\] \}\)/,
  );
  // No array was lost: with enough memory, the same call succeeds.
  backend.free(kept.pop()!);
  expect((await backend.download(await f(x))).toNumbers().every((value) => value === 1)).toBe(true);
});

test("results keep their values while others are collected, also with helper threads", async () => {
  const backend = await openBackend(12, 2);
  const f = jit((a: Tensor, b: Tensor) => add(a, b), backend);
  const one = NdArray.from(new Float32Array(mebibyte / 4).fill(1), [mebibyte / 4], "f32");
  let kept = backend.upload(one);
  for (let i = 2; i <= 40; i++) kept = await f(kept, one);
  const values = (await backend.download(kept)).toNumbers();
  expect(values.every((value) => value === 40)).toBe(true);
  await backend.close();
});

test("a loop of 100,000 steps runs in bounded memory", { tags: "full", timeout: 1_800_000 }, async () => {
  const backend = await openBackend(64);
  await readmeLoop(backend, { rows: 100, columns: 100, steps: 100_000 });
  expect(backend.memory.buffer.byteLength).toBeLessThanOrEqual(64 * mebibyte);
});
