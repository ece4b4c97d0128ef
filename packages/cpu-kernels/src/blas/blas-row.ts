import type { KernelNode, Params } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import type { Contraction, Sgemm } from "./blas.ts";

/** How an operator runs on products of a BLAS, and what its work is to a table that chooses. */
export interface BlasRow<P extends Params = Params> {
  readonly contraction: (node: KernelNode<P>) => Contraction;
  readonly kernel: (sgemm: Sgemm) => Kernel<P>;
}
