import type { Kernel } from "../kernel.ts";
import { foldInPass } from "../kernels/generators/threefry.ts";

export const foldInKernel: Kernel = {
  op: "fold-in",
  plan: () => ({ passes: [foldInPass] }),
};
