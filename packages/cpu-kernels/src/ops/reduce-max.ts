import { extremeKernel } from "../extreme-kernel.ts";
import type { Kernel } from "../kernel.ts";

export const reduceMaxKernel: Kernel = extremeKernel("max");
