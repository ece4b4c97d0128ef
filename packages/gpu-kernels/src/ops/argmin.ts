import type { Kernel } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";
import { stepAlong } from "../kernels/reduce/steps.ts";

export const argminKernel: Kernel = {
  op: "argmin",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("min", x!.dtype, stepAlong(x!.shape, params["dim"] as number), facts),
};
