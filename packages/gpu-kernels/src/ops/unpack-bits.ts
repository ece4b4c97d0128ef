import type { Kernel } from "../kernel.ts";
import { unpackBitsPass } from "../kernels/bits/unpack-bits.ts";

export const unpackBitsKernel: Kernel = {
  op: "unpack-bits",
  plan: ({ outputs }) => ({ passes: [unpackBitsPass(outputs[0]!.shape)] }),
};
