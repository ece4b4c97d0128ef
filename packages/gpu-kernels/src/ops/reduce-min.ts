import { elementCount, reductionSteps } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { extremePlan } from "../kernels/reduce/extreme.ts";

export const reduceMinKernel: Kernel = {
  op: "reduce-min",
  plan: ({ inputs: [x], outputs: [y], params }, facts) =>
    extremePlan("min", x!.dtype, reductionSteps(x!.shape, params["dims"] as number[]), elementCount(y!.shape), facts),
};
