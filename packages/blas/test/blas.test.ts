import { once } from "node:events";
import { rmSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { contractionOps, createCpuBackend, createSharedMemory, type Sgemm } from "@skein/cpu-kernels";
import {
  attention,
  type Backend,
  conv2d,
  type DeviceArray,
  evaluate,
  jit,
  matmul,
  NdArray,
  type Tensor,
  vjp,
} from "@skein/tensor-core";
import { checkGradientValues, checkValues, conformanceCases, normalArray } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBlas } from "../src/node.ts";
import { buildForAll } from "./built.ts";

const rows = conformanceCases.filter(({ op }) => (contractionOps as readonly string[]).includes(op));

const problem = fc.record({
  rows: fc.integer({ min: 1, max: 70 }),
  columns: fc.integer({ min: 1, max: 70 }),
  inner: fc.integer({ min: 1, max: 90 }),
  batch: fc.integer({ min: 1, max: 3 }),
  transposeA: fc.integer({ min: 0, max: 1 }),
  transposeB: fc.integer({ min: 0, max: 1 }),
  alpha: fc.constantFrom(1, -0.5, 0),
  beta: fc.constantFrom(0, 1, 0.25),
  /** Number of unused elements after each row, for each operand. */
  gaps: fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: 0, max: 5 }))),
  /** Whether operands are above 2 GiB, where the highest bit of an address is set. */
  high: fc.boolean(),
});

const unwritten = 777;

/** Returns a deterministic value for each index. */
const valueAt = (i: number): number => ((i * 7919) % 2001) / 1000 - 1;

for (const requested of [undefined, "libblis.so.4"]) {
  const { name, missing, folder, files } = await buildForAll(requested);
  afterAll(() => rmSync(folder, { recursive: true }));

  describe.skipIf(missing)(`${name}`, () => {
    let backend: Backend;
    beforeAll(async () => {
      backend = await createCpuBackend({ blas: openBlas(files) });
    });

    test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
      await checkValues(row, backend);
      if (row.gradient !== undefined) await checkGradientValues(row, backend);
    });

    test("two threads give the bits of one thread for products, convolutions and attention", async () => {
      const one = await createCpuBackend({ blas: { ...openBlas(files), prefers: () => true } });
      const two = await createCpuBackend({ blas: { ...openBlas(files), prefers: () => true }, threads: 2 });
      const values = (...shape: number[]): NdArray => normalArray(shape, shape.length);
      const problems: readonly [fn: (...xs: Tensor[]) => Tensor, inputs: readonly NdArray[]][] = [
        [(a, b) => matmul(a!, b!), [values(200, 300), values(300, 130)]],
        [(a, b) => matmul(a!, b!, { transposeA: true }), [values(300, 201), values(300, 130)]],
        [(x, w) => conv2d(x!, w!, { padding: "same" }), [values(5, 28, 28, 24), values(3, 3, 24, 40)]],
        [(x, w) => conv2d(x!, w!), [values(5, 28, 28, 24), values(1, 1, 24, 40)]],
        [(q, k, v) => attention(q!, k!, v!, { causal: true }), [1, 2, 3].map(() => values(2, 4, 100, 32))],
      ];
      for (const [fn, inputs] of problems) {
        const all = (...xs: Tensor[]): readonly Tensor[] => {
          const { value, pullback } = vjp((operands: readonly Tensor[]) => fn(...operands), xs);
          return [value, ...pullback(value)];
        };
        const [expected, found] = [await evaluate(all, one)(...inputs), await evaluate(all, two)(...inputs)];
        found.forEach((array, i) => expect(Buffer.compare(array.bytes(), expected[i]!.bytes())).toBe(0));
      }
      await two.close();
    });

    test("small products in two threads at once are correct a thousand times", async () => {
      // A library that does not lock its own buffers computes about one product in a hundred wrongly.
      const two = await createCpuBackend({ blas: { ...openBlas(files), prefers: () => true }, threads: 2 });
      const operands = [normalArray([16, 64, 64], 1), normalArray([16, 64, 32], 2)].map((array) => two.upload(array));
      const product = jit((a: Tensor, b: Tensor) => matmul(a, b), two);
      const bytes: Uint8Array[] = [];
      for (let i = 0; i < 1000; i++) {
        const y = await product(...(operands as [DeviceArray, DeviceArray]));
        bytes.push((await two.download(y)).bytes());
        two.free(y);
      }
      expect(bytes.findIndex((one) => Buffer.compare(one, bytes[0]!) !== 0)).toBe(-1);
      await two.close();
    });

    describe("a product on the memory", () => {
      const memory = createSharedMemory();
      let sgemm: Sgemm;
      beforeAll(() => {
        // The product is opened while the memory has one page. The operands are in pages that are added later.
        sgemm = openBlas(files).open(memory);
        memory.grow(34_000);
      });

      test("is alpha op(a) op(b) + beta y for all strides, and writes nothing else", () => {
        fc.assert(
          fc.property(problem, ({ rows, columns, inner, batch, transposeA, transposeB, alpha, beta, gaps, high }) => {
            const [aHigh, aLong] = transposeA ? [inner, rows] : [rows, inner];
            const [bHigh, bLong] = transposeB ? [columns, inner] : [inner, columns];
            const [aStride, bStride, yStride] = [aLong + gaps[0]!, bLong + gaps[1]!, columns + gaps[2]!];
            const [aNext, bNext, yNext] = [aHigh * aStride, bHigh * bStride, rows * yStride];
            const begin = (high ? 2 ** 31 : 0) + 70_000;
            const floats = new Float32Array(memory.buffer, begin, batch * (aNext + bNext + yNext) + 16);
            const [a, b, y] = [0, batch * aNext, batch * (aNext + bNext)];
            floats.forEach((_, i) => (floats[i] = i < y ? valueAt(i) : unwritten));
            for (let p = 0; p < batch; p++)
              for (let i = 0; i < rows; i++)
                for (let j = 0; j < columns; j++)
                  floats[y + p * yNext + i * yStride + j] = beta === 0 ? NaN : valueAt(i + j);
            // Returns an address as kernels pass it: addresses above 2 GiB are negative.
            const at = (offset: number): number => (begin + 4 * offset) | 0;
            sgemm(
              transposeA,
              transposeB,
              rows,
              columns,
              inner,
              alpha,
              at(a),
              aStride,
              at(b),
              bStride,
              beta,
              at(y),
              yStride,
              batch,
              aNext,
              bNext,
              yNext,
            );
            for (let p = 0; p < batch; p++) {
              for (let i = 0; i < rows; i++) {
                for (let j = 0; j < yStride; j++) {
                  const got = floats[y + p * yNext + i * yStride + j]!;
                  if (j >= columns) expect(got).toBe(unwritten);
                  else {
                    let sum = 0;
                    for (let k = 0; k < inner; k++) {
                      const left = floats[a + p * aNext + (transposeA ? k * aStride + i : i * aStride + k)]!;
                      sum += left * floats[b + p * bNext + (transposeB ? j * bStride + k : k * bStride + j)]!;
                    }
                    const expected = alpha * sum + (beta === 0 ? 0 : beta * valueAt(i + j));
                    expect(Math.abs(got - expected)).toBeLessThan(1e-4);
                  }
                }
              }
            }
            for (let i = 0; i < y; i++)
              if (floats[i] !== Math.fround(valueAt(i))) throw new Error(`operand ${i} was written`);
            expect([...floats.subarray(-16)]).toEqual(Array.from({ length: 16 }, () => unwritten));
          }),
          { numRuns: 60 },
        );
      });

      test("takes 17 numbers, and rejects other arguments", () => {
        expect(() => (sgemm as (...args: unknown[]) => void)(0, 0, 1)).toThrow(/17 numbers/);
        expect(() => (sgemm as (...args: unknown[]) => void)(...Array.from({ length: 17 }, () => "1"))).toThrow(
          /17 numbers/,
        );
      });
    });

    test.each([
      ["NaN", NaN, (value: number) => Number.isNaN(value)],
      ["an infinity", Infinity, (value: number) => !Number.isFinite(value)],
    ])("%s affects only its row and column", async (_, value, isHit) => {
      const [rows, inner, columns] = [13, 40, 21];
      const a = Array.from({ length: rows * inner }, (_, i) => valueAt(i) + 2);
      const b = Array.from({ length: inner * columns }, (_, i) => valueAt(i) + 2);
      a[5 * inner + 7] = value;
      b[9 * columns + 4] = value;
      const product = evaluate((a: Tensor, b: Tensor) => matmul(a, b), backend);
      const y = (await product(NdArray.from(a, [rows, inner]), NdArray.from(b, [inner, columns]))).toNumbers();
      expect(y.map(isHit)).toEqual(y.map((_, i) => Math.floor(i / columns) === 5 || i % columns === 4));
    });

    test("four threads at once on one memory give the bits of one thread", async () => {
      const memory = createSharedMemory();
      const start = async (): Promise<readonly string[]> => {
        const worker = new Worker(new URL("thread.ts", import.meta.url), {
          workerData: { files, memory, size: 130, repeats: 60 },
        });
        const [digests] = (await once(worker, "message")) as [readonly string[]];
        await worker.terminate();
        return digests;
      };
      const [alone] = [await start()];
      expect(alone).toHaveLength(1);
      expect(await Promise.all([start(), start(), start(), start()])).toEqual([alone, alone, alone, alone]);
    });

    test("two backends with the same files have the same identity, which names the library and the table", () => {
      const [one, other] = [openBlas(files), openBlas(files)];
      expect(one.identity).toBe(other.identity);
      expect(one.identity).toMatch(/^(OpenBLAS|BLIS|MKL) [^ ]+.* by table [0-9a-f]{12}$/);
    });
  });
}
