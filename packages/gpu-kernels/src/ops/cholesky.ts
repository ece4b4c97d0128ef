import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { choleskyPlan } from "../kernels/decomposition/cholesky.ts";

/** Computes Cholesky factors block by block; see `kernels/decomposition/cholesky.ts`. */
export const choleskyKernel: Kernel = kernelOf({
  op: "cholesky",
  plan: ({ inputs: [a] }, facts) => choleskyPlan(elementCount(a!.shape.slice(0, -2)), a!.shape.at(-1)!, facts),
});
