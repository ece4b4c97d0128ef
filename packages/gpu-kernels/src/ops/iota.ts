import type { Kernel } from "../kernel.ts";
import { iotaPass } from "../kernels/generators/iota.ts";

export const iotaKernel: Kernel = {
  op: "iota",
  plan: ({ outputs, params }) => ({ passes: [iotaPass(outputs[0]!.dtype, outputs[0]!.shape, params["dim"] as number)] }),
};
