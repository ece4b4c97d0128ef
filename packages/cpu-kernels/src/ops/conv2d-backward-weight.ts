import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, weightGradientScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { convolutionSizes, refusesOtherThanF32, sizeArguments } from "./convolution.ts";

export const weightGradientSizes = (node: KernelNode<OperatorParams["conv2d-backward-weight"]>): ConvolutionSizes =>
  convolutionSizes(node.inputs[0]!.shape, node.outputs[0]!.shape, node.inputs[1]!.shape, node.params);

/** Sum over blocks of output pixels; see `assembly/convolution.ts`. */
export const conv2dBackwardWeightKernel: Kernel = kernelOf({
  op: "conv2d-backward-weight",
  refuses: refusesOtherThanF32,
  scratchBytes: (node) => weightGradientScratchBytes(weightGradientSizes(node)),
  bind: (node, wasm) => {
    const sizes = sizeArguments(weightGradientSizes(node));
    const run = wasm["conv2dBackwardWeight"]!;
    return ([first, second], [output], scratch) => {
      run(first!, second!, output!, ...sizes, scratch);
    };
  },
});
