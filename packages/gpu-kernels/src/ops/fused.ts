import { type Kernel, kernelOf } from "../kernel.ts";
import { fusedPass } from "../kernels/fused/fused.ts";

/** Every elementwise operator: one generated shader per program. */
export const fusedKernel: Kernel = kernelOf({
  op: "fused",
  plan: (node) => ({ passes: [fusedPass(node)] }),
});
