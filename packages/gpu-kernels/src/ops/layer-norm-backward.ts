import type { Kernel } from "../kernel.ts";
import { normBackwardPlan } from "../kernels/rows/norm-backward.ts";

export const layerNormBackwardKernel: Kernel = {
  op: "layer-norm-backward",
  plan: ({ inputs: [x] }, facts) => normBackwardPlan(true, x!, facts),
};
