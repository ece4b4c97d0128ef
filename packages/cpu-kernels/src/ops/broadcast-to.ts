import { rowMajorStrides } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import { copyKernel, planCopy } from "../strided-copy.ts";

/** Copies a view with stride 0 along broadcast dimensions. */
export const broadcastToKernel: Kernel = copyKernel("broadcast-to", ({ inputs: [x], outputs: [y] }) => {
  const lead = y!.shape.length - x!.shape.length;
  const own = rowMajorStrides(x!.shape);
  const strides = y!.shape.map((_, dim) => (dim < lead || x!.shape[dim - lead] === 1 ? 0 : own[dim - lead]!));
  return planCopy(y!.shape, y!.dtype, {}, { strides });
});
