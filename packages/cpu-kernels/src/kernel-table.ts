import type { Kernel } from "./kernel.ts";

const rows: readonly Kernel[] = [];

/** Every kernel by operator name. A new kernel is one file and one row. */
export const kernels: { readonly [op: string]: Kernel } = Object.fromEntries(rows.map((kernel) => [kernel.op, kernel]));
