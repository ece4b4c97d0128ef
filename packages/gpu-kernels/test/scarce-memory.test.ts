import {
  add,
  allReduce,
  type Communicator,
  type CompiledFunction,
  cumsum,
  type DeviceArray,
  jit,
  multiply,
  NdArray,
  reshape,
  type Tensor,
  transpose,
} from "@skein/tensor-core";
import { ArrayLedger } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { poolSize } from "../src/buffer-pool.ts";
import { createWebGpuBackend, DeviceMemoryError, type WebGpuBackend } from "../src/index.ts";
import { hasAdapter, nodeGpu } from "./gpu.ts";
import { type ScarceMemory, scarceGpu } from "./scarce-gpu.ts";

const size = 1000;
const filled = (value: number, count = size): NdArray => NdArray.from(new Float32Array(count).fill(value));
const all = (value: number, count = size): number[] => new Array<number>(count).fill(value);

const refusal =
  /^the WebGPU device has no memory for (\d+) more bytes: arrays and workspaces have (\d+) bytes in use, of (\d+) bytes reserved/;

describe.skipIf(!hasAdapter)("a device without free memory", () => {
  let backend: WebGpuBackend;
  let memory: ScarceMemory;
  beforeAll(async () => {
    const scarce = scarceGpu(await nodeGpu);
    memory = scarce.memory;
    backend = await createWebGpuBackend({ gpu: scarce.gpu });
  });
  beforeEach(async () => {
    // Setting the budget to 0 releases idle buffers of the previous test.
    memory.budget = 0;
    const none = backend.upload(NdArray.zeros("f32", [2 ** 20]));
    await expect(backend.download(none)).rejects.toThrow(refusal);
    backend.free(none);
    memory.budget = Infinity;
  });
  afterAll(() => backend.close());

  const numbers = async (array: DeviceArray): Promise<ArrayLike<number>> => (await backend.download(array)).toNumbers();

  /** Leaves idle buffers of `sizes` bytes, and no other free memory. */
  const fillWithIdle = async (sizes: readonly number[]): Promise<void> => {
    const arrays = sizes.map((each) => backend.upload(NdArray.zeros("f32", [each / 4])));
    await memory.quiet();
    for (const array of arrays) backend.free(array);
    memory.budget = memory.live;
  };

  test("destroys idle buffers for a run, whose results are correct", async () => {
    const double = jit((x: Tensor) => multiply(x, 2), backend);
    const x = backend.upload(filled(3));
    await memory.quiet();
    await fillWithIdle([40_000, 10_000]);
    const y = await double(x);
    expect(await numbers(y)).toEqual(all(6));
    expect(backend.bytesReserved()).toBe(memory.live);
    double.release();
    for (const array of [x, y]) backend.free(array);
  });

  test("a loop that drops its results, and dropped compiled functions, run in the memory of a few", async () => {
    const x = backend.upload(filled(1, 100_000));
    await memory.quiet();
    memory.budget = memory.live + 4_000_000; // 10 results
    let y: DeviceArray = x;
    for (let i = 0; i < 12; i++) {
      const next = jit((a: Tensor) => add(a, 1), backend);
      for (let again = 0; again < 5; again++) y = await next(y);
    }
    expect(await numbers(y)).toEqual(all(61, 100_000));
    for (const array of [x, y]) backend.free(array);
    await backend.reclaim!();
    expect(backend.bytesInUse()).toBeLessThan(1000); // the engine may still reference the last function
  });

  test("destroys idle buffers for an upload, and the caller may reuse its memory at once", async () => {
    await fillWithIdle([20_000, 20_000, 20_000, 20_000]);
    const host = filled(7, 8000);
    const array = backend.upload(host);
    (host.data as Float32Array).fill(-1);
    expect(backend.bytesInUse()).toBe(poolSize(32_000));
    // The array is read and freed before the device has confirmed the allocation.
    const [values] = [numbers(array), backend.free(array)];
    expect(await values).toEqual(all(7, 8000));
    await memory.quiet();
    expect([backend.bytesInUse(), backend.bytesReserved()]).toEqual([0, memory.live]);
  });

  test("reads the old values of an array that is freed or donated while its copy waits for a buffer", async () => {
    const x = backend.upload(filled(1));
    await memory.quiet();
    const [values, next] = [numbers(x), (backend.free(x), backend.upload(filled(2)))];
    expect(await values).toEqual(all(1));
    const increment = jit((y: Tensor) => add(y, 1), backend, { donate: [0] });
    const y = backend.upload(filled(3, 8000));
    const [again, given] = await Promise.allSettled([numbers(y), increment(y)]);
    expect(again).toEqual({ status: "fulfilled", value: all(3, 8000) });
    expect(String((given as PromiseRejectedResult).reason)).toMatch(/given away.*await that first/);
    for (const array of [next, y]) backend.free(array);
    increment.release();
    expect(backend.bytesInUse()).toBe(0);
  });

  test("rejects a run without memory, with numbers, leaves its arguments, and runs after memory is freed", async () => {
    const double = jit((x: Tensor) => [multiply(x, 2), cumsum(transpose(reshape(x, [10, size / 10])))], backend, {
      donate: [0],
    });
    const x = backend.upload(filled(1));
    await memory.quiet();
    const before = backend.bytesInUse();
    memory.budget = memory.live;
    const error: unknown = await double(x).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DeviceMemoryError);
    const { message } = error as DeviceMemoryError;
    expect(message).toMatch(refusal);
    expect(message).toMatch(
      /\(1 live array holds 4000 bytes\); free results with `using` or `backend\.free\(array\)`, donate/,
    );
    expect(message).not.toContain("\n");
    expect(Number(refusal.exec(message)![2])).toBe(before);
    expect([backend.bytesInUse(), backend.bytesReserved()]).toEqual([before, memory.live]);
    await expect(numbers(x)).rejects.toThrow(DeviceMemoryError); // there is not enough memory for the read-back either
    memory.budget = Infinity;
    expect(await numbers(x)).toEqual(all(1));
    const [y, sums] = await double(x);
    expect(await numbers(y!)).toEqual(all(2));
    expect((await numbers(sums!))[9]).toBe(10);
    for (const array of [y!, sums!]) backend.free(array);
    double.release();
    expect(backend.bytesInUse()).toBe(0);
  });

  test("every use of a failed upload reports the error, and the upload can be repeated", async () => {
    const double = jit((x: Tensor) => multiply(x, 2), backend);
    memory.budget = 0;
    const x = backend.upload(filled(1));
    await expect(double(x)).rejects.toThrow(refusal);
    await expect(numbers(x)).rejects.toThrow(refusal);
    await expect(double(filled(1))).rejects.toThrow(refusal);
    expect([backend.bytesInUse(), backend.bytesReserved()]).toEqual([0, 0]);
    backend.free(x);
    memory.budget = Infinity;
    const again = await double(filled(2));
    expect(await numbers(again)).toEqual(all(4));
    backend.free(again);
    double.release();
    expect(backend.bytesInUse()).toBe(0);
  });

  test("a run without memory for the operands of its collectives starts no collective", async () => {
    let started = 0;
    const group = {
      rank: 0,
      worldSize: 2,
      members: [0, 1],
      start: () => ({ id: started++ }),
      exchangeTexts: (text: string) => [text, text],
    };
    const reduce = jit((x: Tensor) => add(allReduce(multiply(x, 2), "data"), allReduce(x, "data")), backend, {
      communicators: { data: group as unknown as Communicator },
    });
    const x = backend.upload(filled(1));
    await memory.quiet();
    const before = backend.bytesInUse();
    memory.budget = memory.live;
    const { message } = (await reduce(x).catch((reason: unknown) => reason)) as DeviceMemoryError;
    memory.budget += Number(refusal.exec(message)![1]) - 1; // one byte less than needed
    await expect(reduce(x)).rejects.toThrow(refusal);
    expect([started, backend.bytesInUse(), backend.bytesReserved()]).toEqual([0, before, memory.live]);
    backend.free(x);
    reduce.release();
  });

  // Few shapes and functions, because each shader must be compiled. Integers are used because wrapping sums are exact.
  const counts = [1000, 6000];
  type Call = (...args: (DeviceArray | NdArray)[]) => Promise<DeviceArray[]>;
  interface Row {
    readonly compiled: Call & Pick<CompiledFunction<[], unknown>, "release">;
    readonly donates: boolean;
    readonly wanted: (...values: number[][]) => number[][];
  }
  const rows = (): Row[] => {
    const asRow = (compiled: unknown, donates: boolean, wanted: Row["wanted"]): Row => ({
      compiled: compiled as Row["compiled"],
      donates,
      wanted,
    });
    return [
      asRow(
        jit((x: Tensor) => [multiply(x, 2)], backend),
        false,
        (x) => [x!.map((value) => (2 * value) | 0)],
      ),
      asRow(
        jit((x: Tensor) => [add(x, 1), cumsum(cumsum(x))], backend, { donate: [0] }),
        true,
        (x) => {
          const sums = (values: number[]): number[] => {
            let sum = 0;
            return values.map((value) => (sum = (sum + value) | 0));
          };
          return [x!.map((value) => (value + 1) | 0), sums(sums(x!))];
        },
      ),
    ];
  };

  interface Held {
    readonly array: DeviceArray;
    readonly values: number[];
  }
  type Task =
    | { readonly kind: "run"; readonly row: number; readonly at: number; readonly fromHost: boolean }
    | { readonly kind: "upload"; readonly count: number; readonly value: number }
    | { readonly kind: "download"; readonly at: number }
    | { readonly kind: "free"; readonly at: number }
    | { readonly kind: "release"; readonly row: number };
  const task: fc.Arbitrary<Task> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("run" as const),
        row: fc.nat({ max: 1 }),
        at: fc.nat({ max: 20 }),
        fromHost: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("upload" as const),
        count: fc.constantFrom(...counts),
        value: fc.integer({ min: -3, max: 3 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("download" as const), at: fc.nat({ max: 20 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("free" as const), at: fc.nat({ max: 20 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const), row: fc.nat({ max: 1 }) }) },
  );

  test("runs, uploads, reads, frees and releases at the same time in little memory give no wrong value, and every byte is accounted for", async () => {
    // No array is dropped in this test, and each allocation failure would cost a full garbage collection.
    const reclaim = vi.spyOn(ArrayLedger.prototype, "reclaim").mockResolvedValue();
    onTestFinished(() => reclaim.mockRestore());
    let [done, refused] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(task, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 24, size: "max" }),
        fc.integer({ min: 20, max: 150 }),
        async (batches, kibibytes) => {
          memory.budget = 1024 * kibibytes;
          const table = rows();
          const held = new Set<Held>();
          const arrayBytes = (): number => [...held].reduce((sum, { values }) => sum + poolSize(4 * values.length), 0);
          /**
           * Runs `work`, which may fail because of insufficient memory. After a failure of work that ran alone, checks
           * that no state has changed and that the work would have exceeded the budget.
           */
          const attempt = async (alone: boolean, work: () => Promise<void>): Promise<void> => {
            const before = backend.bytesInUse();
            try {
              await work();
              done++;
            } catch (error) {
              if (!(error instanceof DeviceMemoryError)) throw error;
              const [, asked, inUse] = refusal.exec(error.message)!.map(Number);
              if (alone)
                expect(asked! + inUse!, `${error.message} (budget ${memory.budget})`).toBeGreaterThan(memory.budget);
              if (alone) expect(backend.bytesInUse(), "bytes in use after a refusal").toBe(before);
              refused++;
            }
          };
          const run = async (batch: readonly Task[]): Promise<void> => {
            const alone = batch.length === 1;
            const [busyRows, busyArrays] = [new Set<number>(), new Set<Held>()];
            /** Returns an array that no other task of this batch uses, or undefined if there is none. */
            const pick = (at: number): Held | undefined => {
              const one = [...held][at % Math.max(1, held.size)];
              if (one === undefined || busyArrays.has(one)) return undefined;
              busyArrays.add(one);
              return one;
            };
            const begin = async (what: Task): Promise<void> => {
              if (what.kind === "upload") {
                const values = Array.from({ length: what.count }, (_, i) => what.value + (i % 5));
                await attempt(alone, async () => {
                  const array = backend.upload(NdArray.from(values, [values.length], "i32"));
                  try {
                    expect(await numbers(array)).toEqual(values);
                  } catch (error) {
                    backend.free(array);
                    await memory.quiet();
                    throw error;
                  }
                  held.add({ array, values });
                });
              } else if (what.kind === "release") {
                if (!busyRows.has(what.row)) table[what.row]!.compiled.release();
              } else {
                const one = pick(what.at);
                if (one === undefined) return;
                if (what.kind === "free") {
                  held.delete(one);
                  backend.free(one.array);
                } else if (what.kind === "download")
                  await attempt(alone, async () => expect(await numbers(one.array)).toEqual(one.values));
                else if (what.kind === "run") {
                  if (busyRows.has(what.row)) return;
                  busyRows.add(what.row);
                  const { compiled, donates, wanted } = table[what.row]!;
                  await attempt(alone, async () => {
                    const results = await compiled(
                      what.fromHost ? NdArray.from(one.values, [one.values.length], "i32") : one.array,
                    );
                    if (donates && !what.fromHost) held.delete(one);
                    wanted(one.values).forEach((values, i) => held.add({ array: results[i]!, values }));
                  });
                }
              }
            };
            await Promise.all(batch.map(begin));
            await memory.quiet();
            expect(backend.bytesReserved(), "reserved").toBe(memory.live);
            expect(backend.bytesInUse(), "in use").toBeGreaterThanOrEqual(arrayBytes());
          };
          try {
            for (const batch of batches) await run(batch);
            memory.budget = Infinity;
            for (const { array, values } of held) expect(await numbers(array)).toEqual(values);
            for (const { compiled } of table) compiled.release();
            expect(backend.bytesInUse(), "in use after all workspaces were released").toBe(arrayBytes());
          } finally {
            for (const { compiled } of table) compiled.release();
            for (const { array } of held) backend.free(array);
          }
          expect(backend.bytesInUse(), "in use after all arrays were freed").toBe(0);
          // With any set of idle buffers, the complete memory can be allocated as one buffer.
          memory.budget = 2 ** 20;
          const whole = backend.upload(NdArray.zeros("f32", [memory.budget / 4]));
          await memory.quiet();
          expect([backend.bytesInUse(), memory.live]).toEqual([memory.budget, memory.budget]);
          backend.free(whole);
        },
      ),
      { numRuns: 60 },
    );
    // Successes and failures must both occur, otherwise the test proves nothing.
    expect(done).toBeGreaterThan(300);
    expect(refused).toBeGreaterThan(100);
  });
});
