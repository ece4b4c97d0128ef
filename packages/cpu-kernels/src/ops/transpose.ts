import { rowMajorStrides } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** A copy from a view with permuted strides: rows if the last dimension stays, otherwise tiles of 4 × 4. */
export const transposeKernel: Kernel = copyKernel("transpose", ({ inputs: [x], outputs: [y], params }) => {
  const strides = rowMajorStrides(x!.shape);
  return planCopy(y!.shape, y!.dtype, {}, { strides: params.permutation.map((dim) => strides[dim]!) });
});
