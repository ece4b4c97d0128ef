import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { batchNormPlan } from "../kernels/batch-norm/forward.ts";

export const batchNormKernel: Kernel = kernelOf({
  op: "batch-norm",
  plan: ({ inputs: [x], params }, facts) => {
    const width = x!.shape.at(-1)!;
    return batchNormPlan({ rows: elementCount(x!.shape) / width, width, epsilon: params.epsilon }, facts);
  },
});
