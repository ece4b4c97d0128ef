import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { keyKindOf } from "../kernels/reduce/order-keys.ts";
import { topKPlan } from "../kernels/top-k/plan.ts";

export const topKKernel: Kernel = kernelOf({
  op: "top-k",
  plan: ({ inputs: [x], params }, facts) => {
    const { dtype, shape } = x!;
    const { k, sorted } = params;
    const by = dtype === "f32" ? params.by : keyKindOf[dtype]!;
    return topKPlan({ rows: elementCount(shape.slice(0, -1)), size: shape.at(-1)!, k, by }, sorted, facts);
  },
});
