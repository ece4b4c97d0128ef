import type { Kernel } from "../kernel.ts";
import { literalPlan } from "../kernels/generators/literal.ts";

export const literalKernel: Kernel = {
  op: "literal",
  plan: ({ outputs, params }) => literalPlan(outputs[0]!, (params["values"] as (number | string)[]).map(Number)),
};
