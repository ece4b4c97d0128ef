import type { WasmMemory } from "@skein/tensor-core/backend";

/** Opens the product of a BLAS in a thread: a module that exports `openInThread(data, memory)`. */
export interface ThreadProduct {
  /** URL of the module. */
  readonly module: string;
  /** Argument of `openInThread`. Must be cloneable by postMessage. */
  readonly data: unknown;
}

/**
 * y = alpha · op(a) · op(b) + beta · y, f32, row-major, on the shared memory: `batch` products in sequence.
 *
 * `a`, `b` and `y` are byte addresses. Strides are in elements: between stored rows, and between the operands of a
 * batch. op is the transpose if its flag is 1. With beta 0, the old content of `y` is not read. No size is 0.
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

/** Nanoseconds per multiply-add, in one thread. */
export const multiplyAddNanoseconds: number = 1 / 60;

/** Operators that can run as products of a BLAS. */
export const contractionOps = [
  "matmul",
  "conv2d",
  "conv2d-backward-input",
  "conv2d-backward-weight",
  "attention",
  "attention-backward",
] as const;

/** Name of an operator that can run as products of a BLAS. */
export type ContractionOp = (typeof contractionOps)[number];

/** A node's work, described by the sizes that a table of measured shapes contains. */
export interface Contraction {
  readonly op: ContractionOp;
  /**
   * Variant with its own speed. Products: "nn", "nt", "tn" or "tt" (t: the operand is transposed). Attention: "causal"
   * or "full". Convolutions: "winograd" if WebAssembly uses Winograd. Otherwise "".
   */
  readonly variant: string;
  /** Sizes of the product. Convolutions: sizes of the product by patches. Attention: queries, keys and width. */
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/** A BLAS outside of WebAssembly: `@skein/blas` opens one in Node. */
export interface Blas {
  /** Name of the library and a digest of its table. Ranks of one job must have the same identity. */
  readonly identity: string;
  /**
   * Whether the BLAS computes this work faster than the WebAssembly kernel. Always the same answer for the same work.
   */
  readonly prefers: (contraction: Contraction) => boolean;
  /** Returns the library's product, bound to a memory. The memory is shared, so it does not move when it grows. */
  readonly open: (memory: WasmMemory) => Sgemm;
  /**
   * A product can be split in two at multiples of this number of rows without changing a bit. Absent: threads share
   * whole products only.
   */
  readonly sliceRows?: number | undefined;
  /** Opens the same product in helper threads. Absent: a backend with several threads rejects the BLAS. */
  readonly inThreads?: ThreadProduct | undefined;
}
