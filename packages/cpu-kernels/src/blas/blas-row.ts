import type { KernelNode, Params } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { Contraction, Sgemm } from "./blas.ts";

/** How an operator runs on products of a BLAS, and what its work is to a table that chooses. */
export interface BlasRow<P extends Params = Params> {
  /** None for a node whose work its products cannot do: the kernel in WebAssembly does. */
  readonly contraction: (node: KernelNode<P>) => Contraction | undefined;
  readonly kernel: (sgemm: Sgemm) => Kernel<P>;
}
