import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const rmsNormBackwardKernel: Kernel = rowKernel({
  op: "rms-norm-backward",
  name: "rmsNormBackward",
  scratchWords: 2,
});
