import { argKernel } from "../arg-kernel.ts";
import type { Kernel } from "../kernel.ts";

export const argminKernel: Kernel = argKernel("argmin");
