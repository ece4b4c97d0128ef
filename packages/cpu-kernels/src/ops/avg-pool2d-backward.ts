import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments } from "./pooling.ts";

/** Spreads each cotangent evenly over its window; see `assembly/pooling.ts`. */
export const avgPool2dBackwardKernel: Kernel = kernelOf({
  op: "avg-pool2d-backward",
  refuses: refusesOtherThanF32,
  bind: (node, wasm) => {
    const sizes = poolingArguments(node.outputs[0]!.shape, node.inputs[0]!.shape, node.params).concat(
      Number(node.params.countPadding),
    );
    const run = wasm["avgPool2dBackward"]!;
    return ([g], [output]) => {
      run(g!, output!, ...sizes);
    };
  },
});
