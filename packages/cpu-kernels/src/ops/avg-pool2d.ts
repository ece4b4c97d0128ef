import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments, runPooling } from "./pooling.ts";

/** Computes the mean of each window and channel; see `assembly/pooling.ts`. */
export const avgPool2dKernel: Kernel = kernelOf({
  op: "avg-pool2d",
  refuses: refusesOtherThanF32,
  bind: (node, _, __, team) => {
    const sizes = poolingArguments(node.inputs[0]!.shape, node.outputs[0]!.shape, node.params).concat(
      Number(node.params.countPadding),
    );
    return runPooling(team, "avgPool2d", node, sizes);
  },
});
