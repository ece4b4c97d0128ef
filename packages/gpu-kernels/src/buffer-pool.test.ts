import fc from "fast-check";
import { expect, test } from "vitest";
import { BufferPool, type BufferRequest } from "./buffer-pool.ts";
import type { WebGpuDevice } from "./device.ts";
import { minimalDevice } from "./minimal-device.ts";

/** Opens a pool on a device with unlimited memory, with counters of created and live buffers. */
const openPool = (): { readonly pool: BufferPool; readonly made: () => number; readonly live: () => number } => {
  let [made, live] = [0, 0];
  const gpu = {
    createBuffer: ({ size, usage }: GPUBufferDescriptor) => {
      made++;
      live += size;
      return { size, usage, destroy: () => (live -= size) };
    },
    pushErrorScope: () => undefined,
    popErrorScope: async () => null,
  };
  const device = { facts: minimalDevice, gpu, check: () => undefined, settle: (pending: Promise<unknown>) => pending };
  return { pool: new BufferPool(device as unknown as WebGpuDevice), made: () => made, live: () => live };
};

const storage = (bytes: number): BufferRequest => ({ bytes, kind: "storage" });

/** Takes and releases buffers like a run. */
const run = async (pool: BufferPool, requests: readonly BufferRequest[]): Promise<void> => {
  pool.age();
  for (const buffer of await pool.take(requests)) pool.release(buffer);
};

test("returns unused buffers to the device, even if other buffers of the same size are in use", async () => {
  const { pool, live } = openPool();
  const workspace = await pool.take([storage(2 ** 20), storage(2 ** 20), storage(4096)]);
  for (const buffer of workspace) pool.release(buffer);
  for (let i = 0; i < 600; i++) await run(pool, [storage(4096)]);
  expect([pool.bytesReserved, pool.bytesInUse, live()]).toEqual([4096, 0, 4096]);
});

test("creates no new buffers in a loop, whatever each iteration takes", async () => {
  const turn = fc.array(
    fc.record({ bytes: fc.constantFrom(100, 5000, 70_000), kind: fc.constantFrom("storage", "staging") }),
    {
      maxLength: 4,
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 40 }), async (turns) => {
      const { pool, made, live } = openPool();
      const loop = async (): Promise<void> => {
        for (const requests of turns) await run(pool, requests as BufferRequest[]);
      };
      for (let i = 0; i < 2; i++) await loop();
      const warm = made();
      for (let runs = 0; runs < 1200; runs += turns.length) await loop();
      expect(made()).toBe(warm);
      expect([pool.bytesInUse, pool.bytesReserved]).toEqual([0, live()]);
    }),
    { numRuns: 30 },
  );
});

test("returns a buffer of the requested kind, last released first", async () => {
  const { pool } = openPool();
  const [a, b, c] = await pool.take([storage(1000), storage(1000), { bytes: 1000, kind: "staging" }]);
  for (const buffer of [a!, b!, c!]) pool.release(buffer);
  expect([pool.takeIdle(storage(900)), pool.takeIdle(storage(900)), pool.takeIdle(storage(900))]).toEqual([
    b,
    a,
    undefined,
  ]);
  expect([pool.bytesInUse, pool.bytesReserved]).toEqual([2048, 3072]);
  expect(() => pool.takeIdle(storage(minimalDevice.maxBufferBytes + 1))).toThrow(/maxBufferSize/);
  await expect(pool.take([storage(100), storage(minimalDevice.maxBufferBytes + 1)])).rejects.toThrow(/maxBufferSize/);
  expect([pool.bytesInUse, pool.bytesReserved]).toEqual([2048, 3072]);
});
