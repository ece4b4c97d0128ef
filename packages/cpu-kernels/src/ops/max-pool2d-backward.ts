import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments, runPooling } from "./pooling.ts";

/** Finds the first maximum again, so that no index is kept from the forward pass; see `assembly/pooling.ts`. */
export const maxPool2dBackwardKernel: Kernel = kernelOf({
  op: "max-pool2d-backward",
  refuses: refusesOtherThanF32,
  bind: (node, _, __, team) => {
    const sizes = poolingArguments(node.inputs[0]!.shape, node.inputs[1]!.shape, node.params);
    return runPooling(team, "maxPool2dBackward", node, sizes);
  },
});
