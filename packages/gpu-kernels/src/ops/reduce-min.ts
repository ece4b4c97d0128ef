import { elementCount } from "@skein/tensor-core";
import { reductionSteps } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { extremePlan } from "../kernels/reduce/extreme.ts";

export const reduceMinKernel: Kernel = kernelOf({
  op: "reduce-min",
  plan: ({ inputs: [x], outputs: [y], params }, facts) =>
    extremePlan("min", x!.dtype, reductionSteps(x!.shape, params.dims), elementCount(y!.shape), facts),
});
