import { type Kernel, kernelOf } from "../kernel.ts";
import { packBitsPass } from "../kernels/bits/pack-bits.ts";

export const packBitsKernel: Kernel = kernelOf({
  op: "pack-bits",
  plan: ({ inputs }) => ({ passes: [packBitsPass(inputs[0]!.shape)] }),
});
