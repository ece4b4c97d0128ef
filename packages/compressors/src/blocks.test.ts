import { NdArray, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import { blockShape, fromBlocks, toBlocks } from "./blocks.ts";

describe("blocks", () => {
  it("are few, no larger than allowed, and all but full", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 600 }), (count, blockSize) => {
        const [rows, size] = blockShape(count, blockSize);
        expect(rows).toBe(Math.ceil(count / blockSize));
        expect(size).toBeLessThanOrEqual(blockSize);
        const filling = rows * size - count;
        expect([filling >= 0, filling < rows, filling < size]).toEqual([true, true, true]);
      }),
    );
    expect(blockShape(0, 8)).toEqual([0, 1]);
    expect(blockShape(129, 128)).toEqual([2, 65]);
  });

  it("give back what was cut into them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 9 }), (count, blockSize) => {
        const numbers = Array.from({ length: count }, (_, i) => i + 1);
        const [both] = runWorld(
          (x: Tensor) => [toBlocks(x, blockSize), fromBlocks(toBlocks(x, blockSize), count)],
          [[NdArray.from(numbers)]],
        );
        const [blocks, back] = both as unknown as readonly [NdArray, NdArray];
        expect(blocks.toNumbers().slice(count)).toEqual(blocks.toNumbers().slice(count).fill(0));
        expect(back.toNumbers()).toEqual(numbers);
      }),
      { numRuns: 40 },
    );
  });

  it("refuse a size that is none", () => {
    expect(() => blockShape(10, 0)).toThrow(/blocks of 0 entries/);
    expect(() => blockShape(10, 2.5)).toThrow(/integer from 1/);
  });
});
