import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, convolutionScratchBytes } from "../contraction-scratch.ts";
import type { Kernel } from "../kernel.ts";
import { winogradForward } from "../winograd.ts";
import { convolutionKernel, convolutionSizes, imageValues, outputValues, runByImages } from "./convolution.ts";

export const forwardSizes = (node: KernelNode<OperatorParams["conv2d"]>): ConvolutionSizes =>
  convolutionSizes(node.inputs[0]!.shape, node.inputs[1]!.shape, node.outputs[0]!.shape, node.params);

/**
 * Computes an indirect GEMM over the pixels, see `assembly/convolution.ts`, or uses Winograd, see
 * `assembly/winograd.ts`.
 */
export const conv2dKernel: Kernel = convolutionKernel(
  "conv2d",
  forwardSizes,
  {
    scratchBytes: convolutionScratchBytes,
    bind: (sizes, team, scratchBytes) =>
      runByImages(team, "conv2d", sizes, imageValues(sizes), outputValues(sizes), scratchBytes),
  },
  winogradForward,
);
