import { rowMajorStrides } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { viewCopyPass } from "../kernels/movement/view-copy.ts";

/** Copies a view with an offset and strides. */
export const sliceKernel: Kernel = kernelOf({
  op: "slice",
  plan: ({ inputs: [x], outputs: [y], params }) => {
    const own = rowMajorStrides(x!.shape);
    const steps = params.strides;
    const offset = params.starts.reduce((sum, start, dim) => sum + start * own[dim]!, 0);
    const dims = y!.shape.map((size, dim) => ({ size, stride: own[dim]! * steps[dim]! }));
    return { passes: [viewCopyPass({ dims, offset }, y!.dtype, "slice")] };
  },
});
