import type { Kernel } from "../kernel.ts";
import { normBackwardPlan } from "../kernels/rows/norm-backward.ts";

export const rmsNormBackwardKernel: Kernel = {
  op: "rms-norm-backward",
  plan: ({ inputs: [x] }, facts) => normBackwardPlan(false, x!, facts),
};
