import { extremeKernel } from "../extreme-kernel.ts";
import type { Kernel } from "../kernel.ts";

export const reduceMinKernel: Kernel = extremeKernel("min");
