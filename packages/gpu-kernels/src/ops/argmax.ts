import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { argExtremePlan } from "../kernels/reduce/arg-extreme.ts";

export const argmaxKernel: Kernel = kernelOf({
  op: "argmax",
  plan: ({ inputs: [x], params }, facts) => argExtremePlan("max", x!.dtype, alongDim(x!.shape, params.dim), facts),
});
