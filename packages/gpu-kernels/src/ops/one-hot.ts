import { type Kernel, kernelOf } from "../kernel.ts";
import { oneHotPass } from "../kernels/generators/one-hot.ts";

export const oneHotKernel: Kernel = kernelOf({
  op: "one-hot",
  plan: ({ outputs }) => ({ passes: [oneHotPass(outputs[0]!)] }),
});
