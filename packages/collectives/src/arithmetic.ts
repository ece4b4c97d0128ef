import type { DType, Reduction } from "@skein/tensor-core";

/** What an executor does with bytes. All arrays of one call have one length. */
export interface Arithmetic {
  /**
   * Write the combination of `sources`, folded in the order given, into every one of `targets`. A target may be one of
   * the sources.
   */
  combine(dtype: DType, reduction: Reduction, targets: readonly Uint8Array[], sources: readonly Uint8Array[]): void;
  copy(target: Uint8Array, source: Uint8Array): void;
}

/** dtypes that a reduction takes. 16-bit floats are combined in f32 and rounded after each addition. */
export const reducible: ReadonlySet<DType> = new Set<DType>(["f32", "f16", "bf16", "i32", "u32"]);
