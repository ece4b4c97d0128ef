import type { Shape } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import type { ConvolutionSizes } from "../contraction-scratch.ts";

/** Read the sizes of a convolution off its three shapes, wherever the operator at hand has them. */
export const convolutionSizes = (x: Shape, w: Shape, y: Shape, params: OperatorParams["conv2d"]): ConvolutionSizes => {
  const [strideY, strideX] = params.stride;
  const [[top], [left]] = params.padding;
  const [dilationY, dilationX] = params.dilation;
  return {
    batch: x[0]!,
    height: x[1]!,
    width: x[2]!,
    channels: x[3]!,
    kernelHeight: w[0]!,
    kernelWidth: w[1]!,
    outChannels: w[3]!,
    outHeight: y[1]!,
    outWidth: y[2]!,
    strideY,
    strideX,
    top,
    left,
    dilationY,
    dilationX,
    groups: params.groups,
  };
};

/** The sizes as arguments of the exports, which take them in this order. */
export const sizeArguments = (s: ConvolutionSizes): number[] => [
  s.batch,
  s.height,
  s.width,
  s.channels,
  s.kernelHeight,
  s.kernelWidth,
  s.outChannels,
  s.outHeight,
  s.outWidth,
  s.strideY,
  s.strideX,
  s.top,
  s.left,
  s.dilationY,
  s.dilationX,
  s.groups,
];

/** The kernels are written for f32. */
export const refusesOtherThanF32 = (node: KernelNode): string | undefined => {
  const other = [...node.inputs, ...node.outputs].find((spec) => spec.dtype !== "f32");
  return other === undefined ? undefined : `${node.op} runs on f32, not ${other.dtype}; cast its operands to f32`;
};
