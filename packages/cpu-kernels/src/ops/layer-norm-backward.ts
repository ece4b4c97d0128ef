import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const layerNormBackwardKernel: Kernel = rowKernel({
  op: "layer-norm-backward",
  name: "layerNormBackward",
  scratchWords: 4,
});
