import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { eighPlan } from "../kernels/decomposition/eigh.ts";

/** Computes eigenvalues and eigenvectors by parallel Jacobi rotations; see `kernels/decomposition/eigh.ts`. */
export const eighKernel: Kernel = kernelOf({
  op: "eigh",
  plan: ({ inputs: [a] }) => eighPlan(elementCount(a!.shape.slice(0, -2)), a!.shape.at(-1)!),
});
