import type { Kernel } from "../kernel.ts";
import { rowPlan } from "../kernels/rows/row-plan.ts";
import { logSoftmaxBackwardProgram } from "../kernels/rows/softmax.ts";

export const logSoftmaxBackwardKernel: Kernel = {
  op: "log-softmax-backward",
  plan: ({ inputs: [x] }, facts) => rowPlan(logSoftmaxBackwardProgram, x!, facts),
};
