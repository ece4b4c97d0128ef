import { rowMajorStrides } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** Copies a view with an offset and strides. */
export const sliceKernel: Kernel = copyKernel("slice", ({ inputs: [x], outputs: [y], params }) => {
  const own = rowMajorStrides(x!.shape);
  const steps = params.strides;
  const offset = params.starts.reduce((sum, start, dim) => sum + start * own[dim]!, 0);
  return planCopy(y!.shape, y!.dtype, {}, { strides: own.map((stride, dim) => stride * steps[dim]!), offset });
});
