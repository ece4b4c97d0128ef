import { type Kernel, kernelOf } from "../kernel.ts";
import { fusedPass } from "../kernels/fused/fused.ts";

/** All elementwise operators: one generated shader per program. */
export const fusedKernel: Kernel = kernelOf({
  op: "fused",
  plan: (node) => ({ passes: [fusedPass(node)] }),
});
