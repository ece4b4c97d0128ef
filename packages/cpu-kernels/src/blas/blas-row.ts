import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { Contraction } from "../blas.ts";
import type { RowSlices } from "./row-slices.ts";

/**
 * BLAS implementation of an operator, and the estimate of its work that is used to choose between BLAS and WebAssembly.
 */
export interface BlasRow<P extends Params = Params> {
  /**
   * Returns the contraction that a node computes, or undefined if BLAS products cannot compute the node. In this case
   * the WebAssembly kernel runs.
   */
  readonly contraction: (node: KernelNode<P>) => Contraction | undefined;
  /**
   * Creates the kernel for a team with an `sgemm`.
   *
   * @param slices Assigns rows of a product to threads.
   */
  readonly kernel: (slices: RowSlices) => Kernel<P>;
}
