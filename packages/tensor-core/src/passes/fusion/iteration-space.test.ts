import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementCount, rowMajorStrides } from "../../shape.ts";
import { collapse, extentsOf, refine, refineStrides, sizesOf, broadcastStrides } from "./iteration-space.ts";

/** Returns the offset of each element of a strided view over `shape`, in row-major order. */
const walk = (shape: readonly number[], strides: readonly number[]): number[] => {
  const steps = rowMajorStrides(shape);
  return Array.from({ length: elementCount(shape) }, (_, flat) =>
    shape.reduce((at, size, dim) => at + (Math.floor(flat / steps[dim]!) % size) * strides[dim]!, 0),
  );
};

describe("iteration space", () => {
  it("finds the shapes that share an iteration", () => {
    expect(refine(extentsOf([64, 10]), extentsOf([640]))).toEqual([10, 640]);
    expect(refine(extentsOf([4, 6]), extentsOf([8, 3]))).toEqual([3, 6, 24]);
    expect(refine(extentsOf([4, 6]), extentsOf([6, 4]))).toBeUndefined();
    expect(refine(extentsOf([]), extentsOf([1, 1]))).toEqual([]);
    expect(sizesOf([3, 6, 24])).toEqual([4, 2, 3]);
  });

  it("reads the same elements after refining and after collapsing", () => {
    const sizes = fc.array(
      fc.record({ size: fc.integer({ min: 1, max: 4 }), stretched: fc.boolean(), pieces: fc.boolean() }),
      {
        maxLength: 4,
      },
    );
    fc.assert(
      fc.property(sizes, fc.boolean(), (dims, withDense) => {
        const shape = dims.map(({ size, pieces }) => (pieces ? size * 2 : size));
        const from = dims.map(({ stretched }, dim) => (stretched ? 1 : shape[dim]!));
        const strides = broadcastStrides(from, shape);
        const finer = refine(
          extentsOf(shape),
          extentsOf(dims.flatMap(({ size, pieces }) => (pieces ? [size, 2] : [size]))),
        )!;
        const views = [
          refineStrides(shape, strides, finer),
          ...(withDense ? [refineStrides(shape, rowMajorStrides(shape), finer)] : []),
        ];
        expect(walk(sizesOf(finer), views[0]!)).toEqual(walk(shape, strides));
        const merged = collapse(sizesOf(finer), views);
        expect(merged.shape.length).toBeGreaterThan(0);
        expect(walk(merged.shape, merged.views[0]!)).toEqual(walk(shape, strides));
        if (withDense) expect(walk(merged.shape, merged.views[1]!)).toEqual(walk(shape, rowMajorStrides(shape)));
      }),
    );
  });

  it("iterates over a dense tensor in one dimension", () => {
    expect(collapse([4, 2, 3], [[6, 3, 1]])).toEqual({ shape: [24], views: [[1]] });
  });
});
