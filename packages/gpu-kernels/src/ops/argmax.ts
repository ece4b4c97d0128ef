import { alongDim } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";

export const argmaxKernel: Kernel = {
  op: "argmax",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("max", x!.dtype, alongDim(x!.shape, params["dim"] as number), facts),
};
