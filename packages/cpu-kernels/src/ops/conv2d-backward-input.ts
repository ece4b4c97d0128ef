import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, inputGradientScratchBytes } from "../contraction-scratch.ts";
import type { Kernel } from "../kernel.ts";
import { winogradInputGradient } from "../winograd.ts";
import { convolutionKernel, convolutionSizes, imageValues, outputValues, runByImages } from "./convolution.ts";

export const inputGradientSizes = (node: KernelNode<OperatorParams["conv2d-backward-input"]>): ConvolutionSizes =>
  convolutionSizes(node.outputs[0]!.shape, node.inputs[1]!.shape, node.inputs[0]!.shape, node.params);

/**
 * Computes an indirect GEMM over the pixels of each stride phase, see `assembly/convolution.ts`, or uses Winograd, see
 * `assembly/winograd.ts`.
 */
export const conv2dBackwardInputKernel: Kernel = convolutionKernel(
  "conv2d-backward-input",
  inputGradientSizes,
  {
    scratchBytes: inputGradientScratchBytes,
    bind: (sizes, team, scratchBytes) =>
      runByImages(team, "conv2dBackwardInput", sizes, outputValues(sizes), imageValues(sizes), scratchBytes),
  },
  winogradInputGradient,
);
