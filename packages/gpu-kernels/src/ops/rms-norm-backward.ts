import { type Kernel, kernelOf } from "../kernel.ts";
import { normBackwardPlan } from "../kernels/rows/norm-backward.ts";

export const rmsNormBackwardKernel: Kernel = kernelOf({
  op: "rms-norm-backward",
  plan: ({ inputs: [x] }, facts) => normBackwardPlan(false, x!, facts),
});
