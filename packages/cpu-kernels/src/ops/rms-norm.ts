import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const rmsNormKernel: Kernel = rowKernel({
  op: "rms-norm",
  name: "rmsNorm",
  numbers: ({ params }) => [params.epsilon],
});
