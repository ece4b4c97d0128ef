import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments, runPooling } from "./pooling.ts";

/** Distributes each cotangent evenly over its window; see `assembly/pooling.ts`. */
export const avgPool2dBackwardKernel: Kernel = kernelOf({
  op: "avg-pool2d-backward",
  refuses: refusesOtherThanF32,
  bind: (node, _, __, team) => {
    const sizes = poolingArguments(node.outputs[0]!.shape, node.inputs[0]!.shape, node.params).concat(
      Number(node.params.countPadding),
    );
    return runPooling(team, "avgPool2dBackward", node, sizes);
  },
});
