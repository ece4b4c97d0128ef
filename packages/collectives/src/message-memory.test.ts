import fc from "fast-check";
import { expect, test } from "vitest";
import { sizeClass, wasmMessageMemory } from "./message-memory.ts";

test("a size class fits its size, wastes at most a quarter above the minimum, and is its own class", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 31 }), (bytes) => {
      const rounded = sizeClass(bytes);
      expect(rounded).toBeGreaterThanOrEqual(bytes);
      expect(rounded).toBeLessThanOrEqual(Math.max(256, bytes * 1.26));
      expect(sizeClass(rounded)).toBe(rounded);
    }),
  );
});

test("blocks in use never overlap, and are reused after they were freed", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 300_000 }), fc.boolean()), { maxLength: 60 }), (asks) => {
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 2000, shared: true });
      const pool = wasmMessageMemory(memory);
      const held: Uint8Array[] = [];
      for (const [bytes, giveBack] of asks) {
        const block = pool.take(bytes);
        expect(block.byteLength).toBe(bytes);
        for (const other of held)
          expect(
            block.byteOffset + bytes <= other.byteOffset || other.byteOffset + other.byteLength <= block.byteOffset,
          ).toBe(true);
        if (giveBack) pool.give(block);
        else held.push(block);
      }
    }),
    { numRuns: 50 },
  );
});

test("allocating and freeing the same sizes forever needs no more memory", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2000, shared: true });
  const pool = wasmMessageMemory(memory);
  for (let i = 0; i < 10_000; i++) {
    const blocks = [100_000, 5, 70_000].map((bytes) => pool.take(bytes + (i % 7)));
    for (const block of blocks) pool.give(block);
  }
  expect(memory.buffer.byteLength).toBeLessThanOrEqual(65_536 + 2 ** 20);
});

test("throws if the memory cannot grow", () => {
  const pool = wasmMessageMemory(new WebAssembly.Memory({ initial: 1, maximum: 3, shared: true }));
  expect(() => pool.take(10 ** 6)).toThrow(
    /1[0-9]{6} bytes for messages do not fit in the world's memory of 65536 bytes/,
  );
});
