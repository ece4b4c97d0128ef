import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments, runPooling } from "./pooling.ts";

/** Computes the maximum of each window and channel; see `assembly/pooling.ts`. */
export const maxPool2dKernel: Kernel = kernelOf({
  op: "max-pool2d",
  refuses: refusesOtherThanF32,
  bind: (node, _, __, team) => {
    const sizes = poolingArguments(node.inputs[0]!.shape, node.outputs[0]!.shape, node.params);
    return runPooling(team, "maxPool2d", node, sizes);
  },
});
