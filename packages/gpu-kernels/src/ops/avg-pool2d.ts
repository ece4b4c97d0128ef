import { type Kernel, kernelOf } from "../kernel.ts";
import { poolPass } from "../kernels/pooling/forward.ts";
import { poolingGeometryOf } from "../kernels/pooling/geometry.ts";

/** Computes the mean of each window; see `kernels/pooling/forward.ts`. */
export const avgPool2dKernel: Kernel = kernelOf({
  op: "avg-pool2d",
  plan: ({ inputs: [x], outputs: [y], params }, facts) => ({
    passes: [
      poolPass(
        poolingGeometryOf(x!.shape, y!.shape, params),
        params.countPadding ? "mean of window" : "mean of pixels",
        facts,
      ),
    ],
  }),
});
