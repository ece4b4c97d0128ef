import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { denseCopyPass } from "../kernels/movement/view-copy.ts";

/** Copies all elements, for nodes whose input and output cannot share memory in the memory plan. */
export const reshapeKernel: Kernel = kernelOf({
  op: "reshape",
  plan: ({ outputs: [y] }) => ({ passes: [denseCopyPass(elementCount(y!.shape), y!.dtype, "reshape")] }),
});
