import { rowMajorStrides } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { viewCopyPass } from "../kernels/movement/view-copy.ts";

/** A copy from a view that starts inside and may step over elements. */
export const sliceKernel: Kernel = {
  op: "slice",
  plan: ({ inputs: [x], outputs: [y], params }) => {
    const own = rowMajorStrides(x!.shape);
    const steps = params["strides"] as readonly number[];
    const offset = (params["starts"] as readonly number[]).reduce((sum, start, dim) => sum + start * own[dim]!, 0);
    const dims = y!.shape.map((size, dim) => ({ size, stride: own[dim]! * steps[dim]! }));
    return { passes: [viewCopyPass({ dims, offset }, y!.dtype, "slice")] };
  },
};
