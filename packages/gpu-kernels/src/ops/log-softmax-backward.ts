import { type Kernel, kernelOf } from "../kernel.ts";
import { rowPlan } from "../kernels/rows/row-plan.ts";
import { logSoftmaxBackwardProgram } from "../kernels/rows/softmax.ts";

export const logSoftmaxBackwardKernel: Kernel = kernelOf({
  op: "log-softmax-backward",
  plan: ({ inputs: [x] }, facts) => rowPlan(logSoftmaxBackwardProgram, x!, facts),
});
