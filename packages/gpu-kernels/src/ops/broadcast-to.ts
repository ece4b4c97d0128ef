import { rowMajorStrides } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { viewCopyPass } from "../kernels/movement/view-copy.ts";

/** Copies a view with stride 0 along broadcast dimensions. */
export const broadcastToKernel: Kernel = kernelOf({
  op: "broadcast-to",
  plan: ({ inputs: [x], outputs: [y] }) => {
    const lead = y!.shape.length - x!.shape.length;
    const own = rowMajorStrides(x!.shape);
    const dims = y!.shape.map((size, dim) => ({
      size,
      stride: dim < lead || x!.shape[dim - lead] === 1 ? 0 : own[dim - lead]!,
    }));
    return { passes: [viewCopyPass({ dims, offset: 0 }, y!.dtype, "broadcast-to")] };
  },
});
