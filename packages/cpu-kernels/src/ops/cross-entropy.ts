import type { Kernel } from "../kernel.ts";
import { rowKernel } from "../row-kernel.ts";

export const crossEntropyKernel: Kernel = rowKernel({ op: "cross-entropy", name: "crossEntropy" });
