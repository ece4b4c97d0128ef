import { type Kernel, kernelOf } from "../kernel.ts";
import { fillRows, nanBits } from "../kernels/rows/fill-rows.ts";
import { rmsNormProgram } from "../kernels/rows/norm.ts";
import { rowPlan, rowsOf } from "../kernels/rows/row-plan.ts";

export const rmsNormKernel: Kernel = kernelOf({
  op: "rms-norm",
  plan: ({ inputs: [x], params }, facts) => {
    const { rows, columns } = rowsOf(x!);
    if (columns > 0) return rowPlan(rmsNormProgram(params.epsilon, columns), x!, facts);
    return { passes: [fillRows("rms-norm", rows, [{ output: 1, bits: nanBits }])] };
  },
});
