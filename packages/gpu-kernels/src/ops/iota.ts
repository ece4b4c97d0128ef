import { type Kernel, kernelOf } from "../kernel.ts";
import { iotaPass } from "../kernels/generators/iota.ts";

export const iotaKernel: Kernel = kernelOf({
  op: "iota",
  plan: ({ outputs, params }) => ({ passes: [iotaPass(outputs[0]!.dtype, outputs[0]!.shape, params.dim)] }),
});
