import type { DType, Reduction } from "@skein/tensor-core";

/** Reductions and copies of byte arrays, used to execute schedules. All arrays of one call have the same length. */
export interface Arithmetic {
  /**
   * Combines `sources` in the given order (left fold), and writes the result to every array in `targets`. A target may
   * be one of the sources.
   */
  combine(dtype: DType, reduction: Reduction, targets: readonly Uint8Array[], sources: readonly Uint8Array[]): void;
  copy(target: Uint8Array, source: Uint8Array): void;
}

/** dtypes that reductions accept. 16-bit floats are combined in f32 and rounded after each addition. */
export const reducible: ReadonlySet<DType> = new Set<DType>(["f32", "f16", "bf16", "i32", "u32"]);
