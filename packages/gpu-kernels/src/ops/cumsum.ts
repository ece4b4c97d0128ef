import { alongDim } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { cumsumPlan } from "../kernels/scan/cumsum.ts";

export const cumsumKernel: Kernel = kernelOf({
  op: "cumsum",
  plan: ({ inputs: [x], params }, facts) =>
    cumsumPlan(x!.dtype === "f32" ? "f32" : "u32", alongDim(x!.shape, params.dim), params.reverse, facts),
});
