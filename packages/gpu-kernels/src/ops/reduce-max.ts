import { elementCount } from "@skein/tensor-core";
import { reductionSteps } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { extremePlan } from "../kernels/reduce/extreme.ts";

export const reduceMaxKernel: Kernel = kernelOf({
  op: "reduce-max",
  plan: ({ inputs: [x], outputs: [y], params }, facts) =>
    extremePlan("max", x!.dtype, reductionSteps(x!.shape, params.dims), elementCount(y!.shape), facts),
});
