import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments, runPooling } from "./pooling.ts";

/**
 * Adds each cotangent to the first maximum of its window. The position is recomputed, so that the forward pass stores
 * no index; see `assembly/pooling.ts`.
 */
export const maxPool2dBackwardKernel: Kernel = kernelOf({
  op: "max-pool2d-backward",
  refuses: refusesOtherThanF32,
  bind: (node, _, __, team) => {
    const sizes = poolingArguments(node.inputs[0]!.shape, node.inputs[1]!.shape, node.params);
    return runPooling(team, "maxPool2dBackward", node, sizes);
  },
});
