import { type Kernel, kernelOf } from "../kernel.ts";
import { rowPlan } from "../kernels/rows/row-plan.ts";
import { softmaxProgram } from "../kernels/rows/softmax.ts";

export const softmaxKernel: Kernel = kernelOf({
  op: "softmax",
  plan: ({ inputs: [x] }, facts) => rowPlan(softmaxProgram, x!, facts),
});
