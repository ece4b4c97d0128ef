import { type Kernel, kernelOf } from "../kernel.ts";
import { fillPass } from "../kernels/generators/fill.ts";

export const constantKernel: Kernel = kernelOf({
  op: "constant",
  plan: ({ outputs, params }) => ({ passes: [fillPass(outputs[0]!, Number(params.value))] }),
});
