import { type Kernel, kernelOf } from "../kernel.ts";
import { literalPlan } from "../kernels/generators/literal.ts";

export const literalKernel: Kernel = kernelOf({
  op: "literal",
  plan: ({ outputs, params }) => literalPlan(outputs[0]!, params.values.map(Number)),
});
