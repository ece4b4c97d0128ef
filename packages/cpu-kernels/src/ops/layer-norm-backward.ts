import type { Kernel } from "../kernel.ts";
import { rowNormBackwardKernel } from "../row-norm-backward.ts";

export const layerNormBackwardKernel: Kernel = rowNormBackwardKernel("layer-norm-backward", "layerNormBackward", 2);
