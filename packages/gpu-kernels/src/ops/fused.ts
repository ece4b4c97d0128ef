import type { Kernel } from "../kernel.ts";
import { fusedPass } from "../kernels/fused/fused.ts";

/** Every elementwise operator: one generated shader per program. */
export const fusedKernel: Kernel = {
  op: "fused",
  plan: (node) => ({ passes: [fusedPass(node)] }),
};
