import { type Kernel, kernelOf } from "../kernel.ts";
import { rowPlan } from "../kernels/rows/row-plan.ts";
import { logSoftmaxProgram } from "../kernels/rows/softmax.ts";

export const logSoftmaxKernel: Kernel = kernelOf({
  op: "log-softmax",
  plan: ({ inputs: [x] }, facts) => rowPlan(logSoftmaxProgram, x!, facts),
});
