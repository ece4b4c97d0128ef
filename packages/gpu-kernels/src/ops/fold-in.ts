import { type Kernel, kernelOf } from "../kernel.ts";
import { foldInPass } from "../kernels/generators/threefry.ts";

export const foldInKernel: Kernel = kernelOf({
  op: "fold-in",
  plan: () => ({ passes: [foldInPass] }),
});
