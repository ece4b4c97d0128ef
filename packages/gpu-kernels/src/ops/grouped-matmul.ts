import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { fillPass } from "../kernels/generators/fill.ts";
import { groupedPlan } from "../kernels/matmul/grouped.ts";

/**
 * Multiplies rows by the matrix of their group. Each tile finds its group at run time; see
 * `kernels/matmul/placement.ts`.
 */
export const groupedMatmulKernel: Kernel = kernelOf({
  op: "grouped-matmul",
  plan: ({ inputs: [x, w], outputs: [y], params }, facts) => {
    if (elementCount(w!.shape) === 0) return { passes: [fillPass(y!, 0)] };
    const [rows, inner] = x!.shape as [number, number];
    return groupedPlan({ rows, inner, columns: y!.shape[1]!, groups: w!.shape[0]! }, params.transposeW, facts);
  },
});
