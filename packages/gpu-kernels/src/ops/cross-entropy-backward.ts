import { type Kernel, kernelOf } from "../kernel.ts";
import { rowPlan, rowsOf } from "../kernels/rows/row-plan.ts";
import { crossEntropyBackwardProgram } from "../kernels/rows/softmax.ts";

export const crossEntropyBackwardKernel: Kernel = kernelOf({
  op: "cross-entropy-backward",
  plan: ({ inputs: [logits] }, facts) => rowPlan(crossEntropyBackwardProgram(rowsOf(logits!).columns), logits!, facts),
});
