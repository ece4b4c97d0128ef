import type { WasmMemory } from "@skein/tensor-core/backend";
import type { Blas, Contraction, Sgemm } from "../src/blas.ts";

/** Computes `Sgemm` by definition over a memory, with sums in f64. */
const plainSgemm =
  (memory: WasmMemory): Sgemm =>
  (
    transposeA,
    transposeB,
    rows,
    columns,
    inner,
    alpha,
    a,
    aStride,
    b,
    bStride,
    beta,
    y,
    yStride,
    batch,
    aNext,
    bNext,
    yNext,
  ) => {
    if (rows * columns * inner * batch === 0)
      throw new Error(`a product of ${rows} × ${columns} × ${inner}, ${batch} times`);
    const floats = new Float32Array(memory.buffer);
    for (let p = 0; p < batch; p++) {
      const [aAt, bAt, yAt] = [(a >>> 2) + p * aNext, (b >>> 2) + p * bNext, (y >>> 2) + p * yNext];
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          for (let k = 0; k < inner; k++) {
            const x = floats[aAt + (transposeA ? k * aStride + i : i * aStride + k)]!;
            sum += x * floats[bAt + (transposeB ? j * bStride + k : k * bStride + j)]!;
          }
          const at = yAt + i * yStride + j;
          floats[at] = alpha * sum + (beta === 0 ? 0 : beta * floats[at]!);
        }
      }
    }
  };

/**
 * Creates a slow and correct BLAS for tests, which needs no library. The BLAS is preferred for all contractions, or for
 * those selected by `prefers`.
 */
export const plainBlas = (prefers: (contraction: Contraction) => boolean = () => true): Blas => ({
  identity: "plain loops",
  prefers,
  open: plainSgemm,
  sliceRows: 1,
});
