import { type Kernel, kernelOf } from "../kernel.ts";
import { fillPass } from "../kernels/generators/fill.ts";
import { groupedWeightPlan } from "../kernels/matmul/grouped.ts";

/** Sums over the rows of each group, with one layer of tiles per group; see `kernels/matmul/placement.ts`. */
export const groupedMatmulBackwardWeightKernel: Kernel = kernelOf({
  op: "grouped-matmul-backward-weight",
  plan: ({ inputs: [x], outputs: [dw] }, facts) => {
    const rows = x!.shape[0]!;
    if (rows === 0) return { passes: [fillPass(dw!, 0)] };
    const [groups, inner, columns] = dw!.shape as [number, number, number];
    return groupedWeightPlan({ rows, inner, columns, groups }, facts);
  },
});
