import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { batchNormBackwardPlan } from "../kernels/batch-norm/backward.ts";

export const batchNormBackwardKernel: Kernel = kernelOf({
  op: "batch-norm-backward",
  plan: ({ inputs: [x], params }, facts) => {
    const width = x!.shape.at(-1)!;
    return batchNormBackwardPlan({ rows: elementCount(x!.shape) / width, width, epsilon: params.epsilon }, facts);
  },
});
