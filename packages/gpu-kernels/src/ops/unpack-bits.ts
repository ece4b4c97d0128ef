import { type Kernel, kernelOf } from "../kernel.ts";
import { unpackBitsPass } from "../kernels/bits/unpack-bits.ts";

export const unpackBitsKernel: Kernel = kernelOf({
  op: "unpack-bits",
  plan: ({ outputs }) => ({ passes: [unpackBitsPass(outputs[0]!.shape)] }),
});
