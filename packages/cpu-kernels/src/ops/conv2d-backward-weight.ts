import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { TILE_COLUMNS } from "../../assembly/blocks.ts";
import {
  convolutionNanoseconds,
  type ConvolutionSizes,
  isDepthwise,
  weightGradientScratchBytes,
} from "../contraction-scratch.ts";
import type { Kernel, KernelCall } from "../kernel.ts";
import type { Team } from "../team/team.ts";
import { winogradWeightGradient } from "../winograd.ts";
import { convolutionKernel, convolutionSizes, sizeArguments } from "./convolution.ts";

export const weightGradientSizes = (node: KernelNode<OperatorParams["conv2d-backward-weight"]>): ConvolutionSizes =>
  convolutionSizes(node.inputs[0]!.shape, node.outputs[0]!.shape, node.inputs[1]!.shape, node.params);

/** Binds the gradient for several threads. Sums run over all pixels, so threads share panels of output channels. */
const bindByPanels = (sizes: ConvolutionSizes, team: Team, scratchBytes: number): KernelCall => {
  const args = sizeArguments(sizes);
  const run = team.indexOf("conv2dBackwardWeight");
  const { outChannels, groups } = sizes;
  const panels = isDepthwise(sizes) ? 1 : groups * Math.ceil(outChannels / groups / TILE_COLUMNS);
  const parts = team.partsOf(convolutionNanoseconds(sizes), panels);
  return ([x, g], [w], scratch) =>
    team.run(parts, (part, call) => call(run, x!, g!, w!, ...args, scratch + part * scratchBytes, part, parts));
};

/** Sums over blocks of output pixels, see `assembly/convolution.ts`, or uses Winograd, see `assembly/winograd.ts`. */
export const conv2dBackwardWeightKernel: Kernel = convolutionKernel(
  "conv2d-backward-weight",
  weightGradientSizes,
  { scratchBytes: weightGradientScratchBytes, bind: bindByPanels },
  winogradWeightGradient,
);
