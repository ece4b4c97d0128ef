import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const batchNormKernel: Kernel = rowKernel({
  op: "batch-norm",
  name: "batchNorm",
  numbers: ({ params }) => [params.epsilon],
  scratchWords: 2,
});
