import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { Contraction } from "../blas.ts";
import type { RowSlices } from "./row-slices.ts";

/**
 * Implementation of an operator with a BLAS, and the description of its work that the choice between BLAS and
 * WebAssembly is based on.
 */
export interface BlasRow<P extends Params = Params> {
  /**
   * Returns the work of a node. Undefined if products of a BLAS cannot compute the node; the WebAssembly kernel runs
   * instead.
   */
  readonly contraction: (node: KernelNode<P>) => Contraction | undefined;
  /** Creates the kernel for a team with an `sgemm`. @param slices Assigns rows of a product to threads. */
  readonly kernel: (slices: RowSlices) => Kernel<P>;
}
