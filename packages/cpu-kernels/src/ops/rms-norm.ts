import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const rmsNormKernel: Kernel = rowKernel({
  op: "rms-norm",
  name: "rmsNorm",
  shared: [1],
  numbers: ({ params }) => [params.epsilon],
});
