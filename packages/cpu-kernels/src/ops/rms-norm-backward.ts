import type { Kernel } from "../kernel.ts";
import { rowNormBackwardKernel } from "../row-norm-backward.ts";

export const rmsNormBackwardKernel: Kernel = rowNormBackwardKernel("rms-norm-backward", "rmsNormBackward", 1);
