import { elementCount, reductionSteps } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { extremePlan } from "../kernels/reduce/extreme.ts";

export const reduceMaxKernel: Kernel = {
  op: "reduce-max",
  plan: ({ inputs: [x], outputs: [y], params }, facts) =>
    extremePlan("max", x!.dtype, reductionSteps(x!.shape, params["dims"] as number[]), elementCount(y!.shape), facts),
};
