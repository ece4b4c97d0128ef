import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";

export const argminKernel: Kernel = kernelOf({
  op: "argmin",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("min", x!.dtype, alongDim(x!.shape, params.dim), facts),
});
