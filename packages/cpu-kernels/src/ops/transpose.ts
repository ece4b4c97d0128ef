import { rowMajorStrides } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** Copies a view with permuted strides: by rows if the last dimension stays last, otherwise by tiles of 4 × 4. */
export const transposeKernel: Kernel = copyKernel("transpose", ({ inputs: [x], outputs: [y], params }) => {
  const strides = rowMajorStrides(x!.shape);
  return planCopy(y!.shape, y!.dtype, {}, { strides: params.permutation.map((dim) => strides[dim]!) });
});
