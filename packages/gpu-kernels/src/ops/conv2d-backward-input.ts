import { type Kernel, kernelOf } from "../kernel.ts";
import { gatherPlan } from "../kernels/convolution/choose.ts";
import { backwardGather } from "../kernels/convolution/gather.ts";
import { geometryOf } from "../kernels/convolution/geometry.ts";
import { refusesHalf } from "../kernels/convolution/refuses-half.ts";

/** Sums, for each pixel, over the taps that contribute to the pixel; see `kernels/convolution/gather.ts`. */
export const conv2dBackwardInputKernel: Kernel = kernelOf({
  op: "conv2d-backward-input",
  refuses: refusesHalf,
  plan: ({ inputs: [g, w], outputs: [x], params }, facts) =>
    gatherPlan(geometryOf(x!.shape, w!.shape, g!.shape, params), backwardGather, g!, x!, facts),
});
