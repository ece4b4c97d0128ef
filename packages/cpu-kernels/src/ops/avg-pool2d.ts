import { type Kernel, kernelOf } from "../kernel.ts";
import { refusesOtherThanF32 } from "./convolution.ts";
import { poolingArguments } from "./pooling.ts";

/** Mean per window and channel; see `assembly/pooling.ts`. */
export const avgPool2dKernel: Kernel = kernelOf({
  op: "avg-pool2d",
  refuses: refusesOtherThanF32,
  bind: (node, wasm) => {
    const sizes = poolingArguments(node.inputs[0]!.shape, node.outputs[0]!.shape, node.params).concat(
      Number(node.params.countPadding),
    );
    const run = wasm["avgPool2d"]!;
    return ([x], [output]) => {
      run(x!, output!, ...sizes);
    };
  },
});
