import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const layerNormKernel: Kernel = rowKernel({
  op: "layer-norm",
  name: "layerNorm",
  shared: [1, 2],
  numbers: ({ params }) => [params.epsilon],
});
