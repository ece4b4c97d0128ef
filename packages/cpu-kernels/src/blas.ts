import type { WasmMemory } from "@skein/tensor-core/backend";

/**
 * Module that loads the matrix product of a BLAS in a helper thread. The module exports `openInThread(data, memory)`.
 */
export interface ThreadProduct {
  /** URL of the module. */
  readonly module: string;
  /** Argument of `openInThread`. Must be cloneable by postMessage. */
  readonly data: unknown;
}

/**
 * Computes y = alpha · op(a) · op(b) + beta · y, f32, row-major, on the shared memory: `batch` products in sequence.
 *
 * `a`, `b` and `y` are byte addresses. Strides between stored rows, and between the operands of a batch, are in
 * elements. op is the transpose if its flag is 1, and the identity if its flag is 0. If beta is 0, the old content of
 * `y` is not read. All sizes are at least 1.
 */
export type Sgemm = (
  transposeA: number,
  transposeB: number,
  rows: number,
  columns: number,
  inner: number,
  alpha: number,
  a: number,
  aStride: number,
  b: number,
  bStride: number,
  beta: number,
  y: number,
  yStride: number,
  batch: number,
  aNext: number,
  bNext: number,
  yNext: number,
) => void;

/** Estimated nanoseconds per multiply-add of a BLAS, in one thread. */
export const multiplyAddNanoseconds: number = 1 / 60;

/** Names of the operators that a BLAS can compute as matrix products. */
export const contractionOps = [
  "matmul",
  "conv2d",
  "conv2d-backward-input",
  "conv2d-backward-weight",
  "attention",
  "attention-backward",
] as const;

/** Name of an operator that a BLAS can compute as matrix products. */
export type ContractionOp = (typeof contractionOps)[number];

/**
 * The matrix product, attention or convolution that a node computes, described by its operator, variant and sizes. Key
 * for lookups in the tables of measured shapes.
 */
export interface Contraction {
  readonly op: ContractionOp;
  /**
   * Variant of the operator that is measured separately.
   * - Products: "nn", "nt", "tn" or "tt" (t: the operand is transposed).
   * - Attention: "causal" or "full".
   * - Convolutions: "winograd" if WebAssembly uses Winograd.
   * - All other operators: "".
   */
  readonly variant: string;
  /**
   * Sizes of the matrix product. Convolutions: sizes of the product with the column matrix. Attention: number of
   * queries, number of keys, and entries per key.
   */
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/** A BLAS outside of WebAssembly. In Node, `@skein/blas` opens a BLAS. */
export interface Blas {
  /** Name of the library and digest of its shape table. All ranks of a job must have the same identity. */
  readonly identity: string;
  /** Whether the BLAS computes this contraction faster than the WebAssembly kernel. Depends only on the contraction. */
  readonly prefers: (contraction: Contraction) => boolean;
  /**
   * Returns the `sgemm` of the library, bound to a memory. The memory must be shared, so that its address does not
   * change when it grows.
   */
  readonly open: (memory: WasmMemory) => Sgemm;
  /**
   * Row granularity of splits: a product can be split in two at each multiple of this number of rows, with bitwise
   * identical results. Absent: products cannot be split, so threads share only whole products.
   */
  readonly sliceRows?: number | undefined;
  /** Module that loads the same product in helper threads. Absent: a backend with several threads rejects this BLAS. */
  readonly inThreads?: ThreadProduct | undefined;
}
