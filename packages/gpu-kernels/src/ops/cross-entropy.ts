import { type Kernel, kernelOf } from "../kernel.ts";
import { fillRows, nanBits, negativeInfinityBits } from "../kernels/rows/fill-rows.ts";
import { rowPlan, rowsOf } from "../kernels/rows/row-plan.ts";
import { crossEntropyProgram } from "../kernels/rows/softmax.ts";

export const crossEntropyKernel: Kernel = kernelOf({
  op: "cross-entropy",
  plan: ({ inputs: [logits] }, facts) => {
    const { rows, columns } = rowsOf(logits!);
    if (columns > 0) return rowPlan(crossEntropyProgram(columns), logits!, facts);
    const values = [
      { output: 0, bits: nanBits },
      { output: 1, bits: negativeInfinityBits },
      { output: 2, bits: 0 },
    ];
    return { passes: [fillRows("cross-entropy", rows, values)] };
  },
});
