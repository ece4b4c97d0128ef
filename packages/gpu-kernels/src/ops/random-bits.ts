import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { randomBitsPass } from "../kernels/generators/threefry.ts";

export const randomBitsKernel: Kernel = kernelOf({
  op: "random-bits",
  plan: ({ outputs }) => ({ passes: [randomBitsPass(elementCount(outputs[0]!.shape))] }),
});
