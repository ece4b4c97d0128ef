import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, inputGradientScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { convolutionSizes, refusesOtherThanF32, sizeArguments } from "./convolution.ts";

export const inputGradientSizes = (node: KernelNode<OperatorParams["conv2d-backward-input"]>): ConvolutionSizes =>
  convolutionSizes(node.outputs[0]!.shape, node.inputs[1]!.shape, node.inputs[0]!.shape, node.params);

/** Indirect GEMM over the pixels of each stride phase; see `assembly/convolution.ts`. */
export const conv2dBackwardInputKernel: Kernel = kernelOf({
  op: "conv2d-backward-input",
  refuses: refusesOtherThanF32,
  scratchBytes: (node) => inputGradientScratchBytes(inputGradientSizes(node)),
  bind: (node, wasm) => {
    const sizes = sizeArguments(inputGradientSizes(node));
    const run = wasm["conv2dBackwardInput"]!;
    return ([first, second], [output], scratch) => {
      run(first!, second!, output!, ...sizes, scratch);
    };
  },
});
