import { type Kernel, kernelOf } from "../kernel.ts";
import { weightPlan } from "../kernels/convolution/choose.ts";
import { geometryOf } from "../kernels/convolution/geometry.ts";
import { refusesHalf } from "../kernels/convolution/refuses-half.ts";

/** Computes a product over pixels, split between workgroups; see `kernels/convolution/weight-tiled.ts`. */
export const conv2dBackwardWeightKernel: Kernel = kernelOf({
  op: "conv2d-backward-weight",
  refuses: refusesHalf,
  plan: ({ inputs: [x, g], outputs: [w], params }, facts) =>
    weightPlan(geometryOf(x!.shape, w!.shape, g!.shape, params), x!, w!, facts),
});
