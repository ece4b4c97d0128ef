import { type Kernel, kernelOf } from "../kernel.ts";
import { maxPoolBackwardPlan } from "../kernels/pooling/backward.ts";
import { poolingGeometryOf } from "../kernels/pooling/geometry.ts";

/** Adds each cotangent to the first maximum of its window, which is recomputed; see `kernels/pooling/backward.ts`. */
export const maxPool2dBackwardKernel: Kernel = kernelOf({
  op: "max-pool2d-backward",
  plan: ({ inputs: [x, g], params }) => maxPoolBackwardPlan(poolingGeometryOf(x!.shape, g!.shape, params)),
});
