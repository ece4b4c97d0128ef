import { type Kernel, kernelOf } from "../kernel.ts";
import { gatherPlan } from "../kernels/convolution/choose.ts";
import { forwardGather } from "../kernels/convolution/gather.ts";
import { geometryOf } from "../kernels/convolution/geometry.ts";
import { refusesHalf } from "../kernels/convolution/refuses-half.ts";

/** Computes implicit matrix products; see `kernels/convolution/tiled.ts`. */
export const conv2dKernel: Kernel = kernelOf({
  op: "conv2d",
  refuses: refusesHalf,
  plan: ({ inputs: [x, w], outputs: [y], params }, facts) =>
    gatherPlan(geometryOf(x!.shape, w!.shape, y!.shape, params), forwardGather, x!, y!, facts),
});
