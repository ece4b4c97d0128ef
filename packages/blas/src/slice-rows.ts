import { createSharedMemory, type Sgemm } from "@skein/cpu-kernels";
import type { WasmMemory } from "@skein/tensor-core/backend";

/**
 * Candidates for the row granularity: typical heights of register tiles in libraries, and multiples of these heights.
 */
const candidates = [4, 8, 12, 16, 24, 32, 48, 64, 96];
const trials = 48;
const most = { rows: 260, columns: 200, inner: 700 };

/** Returns a generator of deterministic pseudo-random numbers. */
const generator = (): (() => number) => {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 0x7fff_ffff;
  };
};

/**
 * Returns the smallest candidate number of rows so that a product can be split in two at multiples of this number with
 * bitwise identical results. Tests products of many sizes. Returns undefined if every candidate changes a result. Takes
 * about a second.
 *
 * Libraries compute rows in tiles, and compute the last rows of a product with a different loop. OpenBLAS 0.3.21 on Zen
 * cores has tiles of 12 rows. Splits of the columns change results in every library.
 */
export const measureSliceRows = (open: (memory: WasmMemory) => Sgemm): number | undefined => {
  const memory = createSharedMemory();
  const [a, b] = [65536, 65536 + 4 * most.rows * most.inner];
  const whole = b + 4 * most.inner * most.columns;
  const sliced = whole + 4 * most.rows * most.columns;
  memory.grow(Math.ceil((sliced + 4 * most.rows * most.columns) / 65536));
  const sgemm = open(memory);
  const random = generator();
  const values = new Float32Array(memory.buffer);
  for (let i = a / 4; i < whole / 4; i++) values[i] = random() - 0.5;
  const randomSize = (limit: number): number => 1 + Math.floor(limit * random());
  let left = candidates;
  for (let trial = 0; trial < trials && left.length > 0; trial++) {
    const [rows, columns, inner] = [randomSize(most.rows), randomSize(most.columns), randomSize(most.inner)];
    const [ta, tb] = [trial % 3 === 2 ? 1 : 0, trial % 3 === 1 ? 1 : 0];
    const [aStride, bStride] = [ta === 1 ? rows : inner, tb === 1 ? inner : columns];
    const multiply = (first: number, count: number, y: number): void => {
      const from = a + 4 * first * (ta === 1 ? 1 : inner);
      const to = y + 4 * first * columns;
      sgemm(ta, tb, count, columns, inner, 1, from, aStride, b, bStride, 0, to, columns, 1, 0, 0, 0);
    };
    multiply(0, rows, whole);
    const expected = new Uint32Array(memory.buffer, whole, rows * columns);
    const found = new Uint32Array(memory.buffer, sliced, rows * columns);
    left = left.filter((candidate) => {
      const cuts = [candidate, candidate * Math.floor(rows / candidate / 2)];
      return cuts.every((cut) => {
        if (cut <= 0 || cut >= rows) return true;
        multiply(0, cut, sliced);
        multiply(cut, rows - cut, sliced);
        return found.every((bits, i) => bits === expected[i]);
      });
    });
  }
  return left[0];
};
