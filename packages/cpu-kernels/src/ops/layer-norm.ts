import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const layerNormKernel: Kernel = rowKernel({
  op: "layer-norm",
  name: "layerNorm",
  numbers: ({ params }) => [params.epsilon],
});
