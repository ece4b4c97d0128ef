import { type Kernel, kernelOf } from "../kernel.ts";
import { rowPlan } from "../kernels/rows/row-plan.ts";
import { softmaxBackwardProgram } from "../kernels/rows/softmax.ts";

export const softmaxBackwardKernel: Kernel = kernelOf({
  op: "softmax-backward",
  plan: ({ inputs: [x] }, facts) => rowPlan(softmaxBackwardProgram, x!, facts),
});
