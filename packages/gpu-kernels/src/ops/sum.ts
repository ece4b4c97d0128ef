import { reductionSteps } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { sumPlan } from "../kernels/reduce/sum.ts";

export const sumKernel: Kernel = kernelOf({
  op: "sum",
  plan: ({ inputs: [x], params }, facts) =>
    sumPlan(x!.dtype === "f32" ? "f32" : "u32", reductionSteps(x!.shape, params.dims), facts),
});
