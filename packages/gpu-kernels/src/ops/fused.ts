import { type Kernel, kernelOf } from "../kernel.ts";
import { fusedPass } from "../kernels/fused/fused.ts";

/** Runs all elementwise operators, with one generated shader per program. */
export const fusedKernel: Kernel = kernelOf({
  op: "fused",
  plan: (node) => ({ passes: [fusedPass(node)] }),
});
