import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Arena, createSharedMemory } from "./arena.ts";
import { OutOfMemoryError } from "./errors.ts";

const commands = fc.array(
  fc.oneof(fc.record({ allocate: fc.integer({ min: 0, max: 200_000 }) }), fc.record({ release: fc.nat() })),
  {
    maxLength: 200,
  },
);

describe("arena", () => {
  test("live blocks never overlap, are aligned, and all memory is released", () => {
    fc.assert(
      fc.property(commands, (list) => {
        const arena = new Arena(createSharedMemory(64 * 2 ** 20));
        const live = new Map<number, number>();
        for (const command of list) {
          if ("allocate" in command) {
            const address = arena.allocate(command.allocate);
            expect(address % 64).toBe(0);
            for (const [other, bytes] of live)
              expect(address + command.allocate <= other || other + bytes <= address).toBe(true);
            expect(live.has(address)).toBe(false);
            live.set(address, command.allocate);
          } else if (live.size > 0) {
            const address = [...live.keys()][command.release % live.size]!;
            arena.release(address);
            live.delete(address);
          }
        }
        for (const address of live.keys()) arena.release(address);
        expect(arena.bytesInUse).toBe(0);
        const reserved = arena.bytesReserved;
        if (reserved > 0) arena.allocate(reserved); // the merged block fits without growth
        expect(arena.bytesReserved).toBe(reserved);
      }),
      { numRuns: 50 },
    );
  });

  test("arenas of one memory do not overlap", () => {
    const memory = createSharedMemory(64 * 2 ** 20);
    const [a, b] = [new Arena(memory), new Arena(memory)];
    const blocks = [a.allocate(5_000_000), b.allocate(5_000_000), a.allocate(5_000_000)].sort((x, y) => x - y);
    expect(blocks[1]! - blocks[0]!).toBeGreaterThanOrEqual(5_000_000);
    expect(blocks[2]! - blocks[1]!).toBeGreaterThanOrEqual(5_000_000);
  });

  test("reports a full memory", () => {
    expect(() => new Arena(createSharedMemory(2 ** 20)).allocate(2 ** 21)).toThrow(OutOfMemoryError);
  });
});
