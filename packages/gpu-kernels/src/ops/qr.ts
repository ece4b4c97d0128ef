import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { qrPlan } from "../kernels/decomposition/qr.ts";

/** Applies Householder reflections in blocks of columns; see `kernels/decomposition/qr.ts`. */
export const qrKernel: Kernel = kernelOf({
  op: "qr",
  plan: ({ inputs: [a] }) =>
    qrPlan({ batch: elementCount(a!.shape.slice(0, -2)), rows: a!.shape.at(-2)!, columns: a!.shape.at(-1)! }),
});
