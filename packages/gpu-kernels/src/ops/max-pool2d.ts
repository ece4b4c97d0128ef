import { type Kernel, kernelOf } from "../kernel.ts";
import { poolPass } from "../kernels/pooling/forward.ts";
import { poolingGeometryOf } from "../kernels/pooling/geometry.ts";

/** Computes the maximum of each window; see `kernels/pooling/forward.ts`. */
export const maxPool2dKernel: Kernel = kernelOf({
  op: "max-pool2d",
  plan: ({ inputs: [x], outputs: [y], params }, facts) => ({
    passes: [poolPass(poolingGeometryOf(x!.shape, y!.shape, params), "maximum", facts)],
  }),
});
