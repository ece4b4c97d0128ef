import type { Kernel } from "../kernel.ts";
import { rowPlan, rowsOf } from "../kernels/rows/row-plan.ts";
import { crossEntropyBackwardProgram } from "../kernels/rows/softmax.ts";

export const crossEntropyBackwardKernel: Kernel = {
  op: "cross-entropy-backward",
  plan: ({ inputs: [logits] }, facts) => rowPlan(crossEntropyBackwardProgram(rowsOf(logits!).columns), logits!, facts),
};
