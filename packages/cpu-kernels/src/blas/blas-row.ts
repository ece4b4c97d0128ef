import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { Contraction } from "../blas.ts";
import type { RowSlices } from "./row-slices.ts";

/** How an operator runs on products of a BLAS, and what its work is to a table that chooses. */
export interface BlasRow<P extends Params = Params> {
  /** None for a node whose work its products cannot do: the kernel in WebAssembly does. */
  readonly contraction: (node: KernelNode<P>) => Contraction | undefined;
  /** On a team with an `sgemm`. @param slices of rows that threads may share. */
  readonly kernel: (slices: RowSlices) => Kernel<P>;
}
