import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { Contraction } from "../blas.ts";
import type { RowSlices } from "./row-slices.ts";

/**
 * Implementation of an operator with a BLAS, and the description of its work from which the faster implementation is
 * chosen.
 */
export interface BlasRow<P extends Params = Params> {
  /** Undefined for a node that the BLAS products cannot compute; the WebAssembly kernel runs instead. */
  readonly contraction: (node: KernelNode<P>) => Contraction | undefined;
  /** Kernel for a team with an `sgemm`. @param slices row slices that threads may share. */
  readonly kernel: (slices: RowSlices) => Kernel<P>;
}
