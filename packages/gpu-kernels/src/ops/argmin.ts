import { alongDim } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";

export const argminKernel: Kernel = {
  op: "argmin",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("min", x!.dtype, alongDim(x!.shape, params["dim"] as number), facts),
};
