import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const batchNormBackwardKernel: Kernel = rowKernel({
  op: "batch-norm-backward",
  name: "batchNormBackward",
  numbers: ({ params }) => [params.epsilon],
  scratchWords: 3,
});
