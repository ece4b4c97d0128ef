import type { Kernel } from "../kernel.ts";
import { rotaryPlan, type RotaryParams } from "../kernels/rotary/rotary.ts";

export const rotaryKernel: Kernel = {
  op: "rotary",
  plan: ({ inputs, params }) => rotaryPlan(inputs[0]!, params as unknown as RotaryParams),
};
