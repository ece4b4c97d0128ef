import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const softmaxKernel: Kernel = rowKernel({ op: "softmax", name: "softmax" });
