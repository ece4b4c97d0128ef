import { elementCount } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { randomBitsPass } from "../kernels/generators/threefry.ts";

export const randomBitsKernel: Kernel = {
  op: "random-bits",
  plan: ({ outputs }) => ({ passes: [randomBitsPass(elementCount(outputs[0]!.shape))] }),
};
