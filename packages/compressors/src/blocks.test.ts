import { concat, NdArray, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import { blockParts, blockShape, fromBlocks, splitBlocks, toBlocks } from "./blocks.ts";

describe("blocks", () => {
  it("are few, within the maximum size, and almost full", () => {
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

  it("restore a vector that was cut into them, and view all parts except the last in place", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 9 }), (count, blockSize) => {
        const numbers = Array.from({ length: count }, (_, i) => i + 1);
        const [rows, size] = blockShape(count, blockSize);
        const layout = blockParts(count, blockSize);
        expect(layout.length).toBe(rows * size === count ? 1 : 2);
        const [results] = runWorld(
          (x: Tensor) => {
            const parts = toBlocks(x, blockSize);
            return [fromBlocks(parts, count), ...splitBlocks(concat(parts), count, blockSize), ...parts];
          },
          [[NdArray.from(numbers)]],
        );
        const [back, ...arrays] = results as unknown as readonly NdArray[];
        expect(back!.toNumbers()).toEqual(numbers);
        const [again, parts] = [arrays.slice(0, layout.length), arrays.slice(layout.length)];
        expect(again.map((part) => [part.shape, part.toNumbers()])).toEqual(
          parts.map((part) => [part.shape, part.toNumbers()]),
        );
        layout.forEach((part, i) => {
          expect(parts[i]!.shape).toEqual([part.rows, size]);
          const filling = Array.from({ length: part.rows * size - part.entries }, () => 0);
          expect(parts[i]!.toNumbers()).toEqual([...numbers.slice(part.begin, part.begin + part.entries), ...filling]);
          if (i === 0 && layout.length === 2) expect(filling).toEqual([]);
        });
      }),
      { numRuns: 60 },
    );
  });

  it("reject an invalid size", () => {
    expect(() => blockShape(10, 0)).toThrow(/block size 0/);
    expect(() => blockShape(10, 2.5)).toThrow(/integer from 1/);
  });
});
