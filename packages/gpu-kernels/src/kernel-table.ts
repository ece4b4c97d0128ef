import type { Kernel } from "./kernel.ts";
import { fusedKernel } from "./ops/fused.ts";

const rows: readonly Kernel[] = [fusedKernel];

/** Every kernel by operator name. A new kernel is one file and one row. */
export const kernels: { readonly [op: string]: Kernel } = Object.fromEntries(rows.map((kernel) => [kernel.op, kernel]));
