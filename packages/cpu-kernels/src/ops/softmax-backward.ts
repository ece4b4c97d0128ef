import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const softmaxBackwardKernel: Kernel = rowKernel({ op: "softmax-backward", name: "softmaxBackward" });
