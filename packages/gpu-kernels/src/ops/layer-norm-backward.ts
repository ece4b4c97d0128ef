import { type Kernel, kernelOf } from "../kernel.ts";
import { normBackwardPlan } from "../kernels/rows/norm-backward.ts";

export const layerNormBackwardKernel: Kernel = kernelOf({
  op: "layer-norm-backward",
  plan: ({ inputs: [x] }, facts) => normBackwardPlan(true, x!, facts),
});
