import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { topKPlan } from "../kernels/top-k/plan.ts";

export const topKKernel: Kernel = kernelOf({
  op: "top-k",
  plan: ({ inputs: [x], params }, facts) => {
    const { shape } = x!;
    const { k, sorted, by } = params;
    return topKPlan({ rows: elementCount(shape.slice(0, -1)), size: shape.at(-1)!, k, by }, sorted, facts);
  },
});
