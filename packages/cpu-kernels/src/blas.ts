import type { WasmMemory } from "@skein/tensor-core/backend";

/** How a thread opens the product of a BLAS: a module that exports `openInThread(data, memory)`. */
export interface ThreadProduct {
  /** URL of the module. */
  readonly module: string;
  /** May be posted. */
  readonly data: unknown;
}

/**
 * y = alpha · op(a) · op(b) + beta · y, f32, row-major, on the shared memory: `batch` products one after the other.
 *
 * `a`, `b` and `y` are byte addresses; strides, between rows as they lie and between the operands of a batch, count
 * elements. op is the transpose where its flag is 1. With beta 0, what lies at `y` is not read. No size is 0.
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

/** Nanoseconds of a multiply-add, in one thread. */
export const multiplyAddNanoseconds: number = 1 / 60;

/** Operators that can run on products of a BLAS. */
export const contractionOps = [
  "matmul",
  "conv2d",
  "conv2d-backward-input",
  "conv2d-backward-weight",
  "attention",
  "attention-backward",
] as const;

/** The name of an operator that can run on products of a BLAS. */
export type ContractionOp = (typeof contractionOps)[number];

/** A node's work by its sizes, as a table of measured shapes knows it. */
export interface Contraction {
  readonly op: ContractionOp;
  /**
   * What else sets its pace: of a product "nn", "nt", "tn" or "tt" (which operand is transposed), of attention "causal"
   * or "full", of a convolution "winograd" where that is how it runs in WebAssembly, else "".
   */
  readonly variant: string;
  /** Of a convolution, those of its product by patches; of attention, queries, keys and width. */
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/** A BLAS outside of WebAssembly: `@skein/blas` opens one in Node. */
export interface Blas {
  /** Which library it is, and a digest of how it chooses. Ranks that share a job have the same. */
  readonly identity: string;
  /**
   * Whether this work is faster by its products than by the kernel in WebAssembly. The same answer for the same work,
   * always.
   */
  readonly prefers: (contraction: Contraction) => boolean;
  /** Its product on a memory that is shared, and so stays where it is when it grows. */
  readonly open: (memory: WasmMemory) => Sgemm;
  /**
   * Rows at whose multiples a product may be cut in two without changing a bit. Without them threads share whole
   * products only.
   */
  readonly sliceRows?: number | undefined;
  /** How helper threads open the same product. Without it a backend of several threads refuses the BLAS. */
  readonly inThreads?: ThreadProduct | undefined;
}
