import { elementCount } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** A dense copy, for the places where the memory plan cannot let both values share their bytes. */
export const bitcastKernel: Kernel = copyKernel("bitcast", ({ outputs: [y] }) =>
  planCopy([elementCount(y!.shape)], y!.dtype, {}, {}),
);
