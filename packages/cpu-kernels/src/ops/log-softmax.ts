import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const logSoftmaxKernel: Kernel = rowKernel({ op: "log-softmax", name: "logSoftmax" });
