import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, convolutionScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { convolutionSizes, refusesOtherThanF32, sizeArguments } from "./convolution.ts";

export const forwardSizes = (node: KernelNode<OperatorParams["conv2d"]>): ConvolutionSizes =>
  convolutionSizes(node.inputs[0]!.shape, node.inputs[1]!.shape, node.outputs[0]!.shape, node.params);

/** Indirect GEMM over the pixels; see `assembly/convolution.ts`. */
export const conv2dKernel: Kernel = kernelOf({
  op: "conv2d",
  refuses: refusesOtherThanF32,
  scratchBytes: (node) => convolutionScratchBytes(forwardSizes(node)),
  bind: (node, wasm) => {
    const sizes = sizeArguments(forwardSizes(node));
    const run = wasm["conv2d"]!;
    return ([first, second], [output], scratch) => {
      run(first!, second!, output!, ...sizes, scratch);
    };
  },
});
