import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const crossEntropyBackwardKernel: Kernel = rowKernel({
  op: "cross-entropy-backward",
  name: "crossEntropyBackward",
});
