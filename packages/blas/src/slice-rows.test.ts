import type { Sgemm } from "@skein/cpu-kernels";
import type { WasmMemory } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import { measureSliceRows } from "./slice-rows.ts";

/** Returns an `sgemm` that sums complete tiles of `tile` rows forwards, and the last rows backwards. */
const tiled =
  (tile: number) =>
  (memory: WasmMemory): Sgemm =>
  (ta, tb, rows, columns, inner, _alpha, a, aStride, b, bStride, _beta, y) => {
    const floats = new Float32Array(memory.buffer);
    const whole = Math.floor(rows / tile) * tile;
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) {
        let sum = 0;
        const terms = j < 2 ? inner : 0; // two columns are enough to detect the difference
        for (let step = 0; step < terms; step++) {
          const k = i < whole ? step : inner - 1 - step;
          const x = floats[a / 4 + (ta === 1 ? k * aStride + i : i * aStride + k)]!;
          sum = Math.fround(sum + x * floats[b / 4 + (tb === 1 ? j * bStride + k : k * bStride + j)]!);
        }
        floats[y / 4 + i * columns + j] = sum;
      }
  };

test("splits rows only at complete tiles, for any tile size of a library", () => {
  expect([6, 96].map((tile) => measureSliceRows(tiled(tile)))).toEqual([12, 96]);
  expect(measureSliceRows(tiled(7))).toBe(undefined);
});
