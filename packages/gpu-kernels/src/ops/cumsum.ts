import type { Kernel } from "../kernel.ts";
import { stepAlong } from "../kernels/reduce/steps.ts";
import { cumsumPlan } from "../kernels/scan/cumsum.ts";

export const cumsumKernel: Kernel = {
  op: "cumsum",
  plan: ({ inputs: [x], params }, facts) =>
    cumsumPlan(x!.dtype === "f32" ? "f32" : "u32", stepAlong(x!.shape, params["dim"] as number), params["reverse"] === true, facts),
};
