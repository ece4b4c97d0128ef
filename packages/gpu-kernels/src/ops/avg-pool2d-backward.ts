import { type Kernel, kernelOf } from "../kernel.ts";
import { meanPoolBackwardPass } from "../kernels/pooling/backward.ts";
import { poolingGeometryOf } from "../kernels/pooling/geometry.ts";

/** Sums, for each pixel, its shares of the cotangents of its windows; see `kernels/pooling/backward.ts`. */
export const avgPool2dBackwardKernel: Kernel = kernelOf({
  op: "avg-pool2d-backward",
  plan: ({ inputs: [g], outputs: [x], params }) => ({
    passes: [meanPoolBackwardPass(poolingGeometryOf(x!.shape, g!.shape, params), params.countPadding)],
  }),
});
