import { type Kernel, kernelOf } from "../kernel.ts";
import { rotaryPlan } from "../kernels/rotary/rotary.ts";

export const rotaryKernel: Kernel = kernelOf({
  op: "rotary",
  plan: ({ inputs, params }) => rotaryPlan(inputs[0]!, params),
});
