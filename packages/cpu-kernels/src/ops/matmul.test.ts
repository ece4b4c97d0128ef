import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { firstDifference } from "@skein/testing";
import { productScratchBytes } from "../contraction-scratch.ts";
import type { WasmExports } from "../wasm-exports.ts";
import { compileWasm, instantiateWasm, type WasmBuild } from "../wasm-build.ts";

const exactly = { absolute: 0, relative: 0 };
const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

/**
 * Allocates operands, two results and scratch memory in sequence, each followed by a guard. No block is aligned to 16
 * bytes.
 */
const layOut = (rows: number, columns: number, inner: number) => {
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 65536, shared: true });
  const floats = new Float32Array(memory.buffer);
  let next = 1025;
  const allocate = (count: number): number => {
    const at = next;
    next += count + 3;
    floats.fill(777, at + count, next);
    return at;
  };
  const [a, b, y, naive] = [
    allocate(rows * inner),
    allocate(inner * columns),
    allocate(rows * columns),
    allocate(rows * columns),
  ];
  next = Math.ceil(next / 4) * 4;
  const scratchFloats = productScratchBytes(rows, columns, inner) / 4;
  const scratch = allocate(scratchFloats);
  const guards = [
    a + rows * inner,
    b + inner * columns,
    y + rows * columns,
    naive + rows * columns,
    scratch + scratchFloats,
  ];
  let state = 1;
  for (const [at, count] of [
    [a, rows * inner],
    [b, inner * columns],
  ] as const) {
    for (let i = 0; i < count; i++) {
      state = (state * 16807) % 2147483647;
      floats[at + i] = (state % 2001) / 1000 - 1;
    }
  }
  floats.fill(NaN, y, y + rows * columns);
  floats.fill(NaN, scratch, scratch + scratchFloats);
  return {
    memory,
    floats,
    a,
    b,
    y,
    naive,
    scratch,
    intact: () => guards.every((at) => floats.subarray(at, at + 3).every((value) => value === 777)),
  };
};

describe.each(builds)("gemm of the %s build", async (build) => {
  const module = await compileWasm(build);
  const sizes = fc.record({
    rows: fc.integer({ min: 0, max: 140 }),
    columns: fc.integer({ min: 0, max: 140 }),
    inner: fc.integer({ min: 0, max: 70 }),
    transposeA: fc.integer({ min: 0, max: 1 }),
    transposeB: fc.integer({ min: 0, max: 1 }),
    accumulate: fc.integer({ min: 0, max: 1 }),
  });

  test("equals the naive product and stays inside its memory", () => {
    fc.assert(
      fc.property(sizes, ({ rows, columns, inner, transposeA, transposeB, accumulate }) => {
        const { memory, floats, a, b, y, naive, scratch, intact } = layOut(rows, columns, inner);
        const wasm: WasmExports = instantiateWasm(module, memory);
        if (accumulate) floats.fill(3, y, y + rows * columns);
        wasm["gemm"]!(4 * a, 4 * b, 4 * y, rows, columns, inner, transposeA, transposeB, accumulate, 4 * scratch);
        wasm["gemmNaive"]!(4 * a, 4 * b, 4 * naive, rows, columns, inner, transposeA, transposeB);
        const worst = floats
          .subarray(y, y + rows * columns)
          .reduce((most, value, i) => Math.max(most, Math.abs(value - floats[naive + i]! - 3 * accumulate)), 0);
        expect(worst).toBeLessThan(1e-4);
        expect(intact()).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    [7, 600, 1030],
    [130, 9, 1030],
    [37, 1030, 6],
  ])("splits %d × %d × %d into blocks", (rows, columns, inner) => {
    for (const [transposeA, transposeB] of [
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ] as const) {
      const { memory, floats, a, b, y, naive, scratch, intact } = layOut(rows, columns, inner);
      const wasm = instantiateWasm(module, memory);
      wasm["gemm"]!(4 * a, 4 * b, 4 * y, rows, columns, inner, transposeA, transposeB, 0, 4 * scratch);
      wasm["gemmNaive"]!(4 * a, 4 * b, 4 * naive, rows, columns, inner, transposeA, transposeB);
      const worst = floats
        .subarray(y, y + rows * columns)
        .reduce((most, value, i) => Math.max(most, Math.abs(value - floats[naive + i]!)), 0);
      expect(worst).toBeLessThan(1e-3);
      expect(intact()).toBe(true);
    }
  });

  test("keeps an infinity in its row and column: unused rows and padded columns do not leak", () => {
    const [rows, columns, inner] = [13, 11, 9];
    const { memory, floats, a, b, y, scratch } = layOut(rows, columns, inner);
    floats[a + 12 * inner + 3] = Infinity;
    floats[b + 3 * columns + 10] = Infinity;
    instantiateWasm(module, memory)["gemm"]!(4 * a, 4 * b, 4 * y, rows, columns, inner, 0, 0, 0, 4 * scratch);
    for (let m = 0; m < rows; m++) {
      for (let n = 0; n < columns; n++)
        expect(Number.isFinite(floats[y + m * columns + n]!)).toBe(m !== 12 && n !== 10);
    }
  });

  const grams = fc.record({
    n: fc.oneof(fc.integer({ min: 2, max: 40 }), fc.integer({ min: 500, max: 700 })),
    inner: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 500, max: 1100 })),
    transposed: fc.integer({ min: 0, max: 1 }),
    order: fc
      .shuffledSubarray([0, 1, 2, 3], { minLength: 1 })
      .map((some) => some.map((_, i) => some.indexOf(some.toSorted()[i]!))),
  });

  test("gives the bits of any product for a matrix times its own transpose, in parts that end in any order", () => {
    fc.assert(
      fc.property(grams, ({ n, inner, transposed, order }) => {
        const { memory, floats, a, b, y, naive, scratch, intact } = layOut(n, n, inner);
        const wasm = instantiateWasm(module, memory);
        floats.copyWithin(b, a, a + n * inner); // a copy, so that the kernel does not know that the operands are equal
        wasm["gemm"]!(4 * a, 4 * b, 4 * naive, n, n, inner, transposed, 1 - transposed, 0, 4 * scratch);
        const gram = (part: number): void =>
          void wasm["gemmPart"]!(
            4 * a,
            4 * a,
            4 * y,
            n,
            n,
            inner,
            transposed,
            1 - transposed,
            0,
            4 * scratch,
            part,
            order.length,
          );
        let written = 0;
        for (const part of order) {
          floats.fill(NaN, y, y + n * n);
          gram(part);
          written += floats.subarray(y, y + n * n).reduce((count, value) => count + Number(!Number.isNaN(value)), 0);
        }
        expect(written).toBe(n * n); // the parts write each entry exactly once
        for (const part of order) gram(part);
        expect(firstDifference(floats.subarray(y, y + n * n), floats.subarray(naive, naive + n * n), exactly)).toBe(
          undefined,
        );
        expect(intact()).toBe(true);
      }),
      { numRuns: 25 },
    );
  });
});
