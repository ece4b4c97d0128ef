import { elementCount } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** Copies all elements, for nodes whose input and output cannot share memory in the memory plan. */
export const bitcastKernel: Kernel = copyKernel("bitcast", ({ outputs: [y] }) =>
  planCopy([elementCount(y!.shape)], y!.dtype, {}, {}),
);
