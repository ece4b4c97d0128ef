import { type Kernel, kernelOf } from "../kernel.ts";
import { fillRows, nanBits } from "../kernels/rows/fill-rows.ts";
import { layerNormProgram } from "../kernels/rows/norm.ts";
import { rowPlan, rowsOf } from "../kernels/rows/row-plan.ts";

export const layerNormKernel: Kernel = kernelOf({
  op: "layer-norm",
  plan: ({ inputs: [x], params }, facts) => {
    const { rows, columns } = rowsOf(x!);
    if (columns > 0) return rowPlan(layerNormProgram(params.epsilon), x!, facts);
    const values = [1, 2].map((output) => ({ output, bits: nanBits }));
    return { passes: [fillRows("layer-norm", rows, values)] };
  },
});
