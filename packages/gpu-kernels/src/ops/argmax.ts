import type { Kernel } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";
import { stepAlong } from "../kernels/reduce/steps.ts";

export const argmaxKernel: Kernel = {
  op: "argmax",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("max", x!.dtype, stepAlong(x!.shape, params["dim"] as number), facts),
};
