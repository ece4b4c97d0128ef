import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const logSoftmaxBackwardKernel: Kernel = rowKernel({ op: "log-softmax-backward", name: "logSoftmaxBackward" });
