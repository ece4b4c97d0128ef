import type { Shape } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { convolutionNanoseconds, type ConvolutionSizes } from "../contraction-scratch.ts";
import { type Kernel, type KernelCall, kernelOf } from "../kernel.ts";
import { partBegin, type Team } from "../team/team.ts";
import { suitsWinograd, type WinogradKernel } from "../winograd.ts";

/** Returns the sizes of a convolution, from the shapes of image, weights and result. */
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

/** Returns the sizes in the order in which the WebAssembly exports expect them. */
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

/** Returns the number of values of one input image. */
export const imageValues = (s: ConvolutionSizes): number => s.height * s.width * s.channels;
export const outputValues = (s: ConvolutionSizes): number => s.outHeight * s.outWidth * s.outChannels;

/**
 * Runs an export that processes images independently. Threads share the images. Inputs: images and weights. Output:
 * results.
 */
export const runByImages = (
  team: Team,
  name: string,
  sizes: ConvolutionSizes,
  valuesFrom: number,
  valuesTo: number,
  scratchBytes: number,
): KernelCall => {
  const run = team.indexOf(name);
  const { batch } = sizes;
  const [, ...args] = sizeArguments(sizes);
  const parts = team.partsOf(convolutionNanoseconds(sizes), batch);
  return ([from, w], [to], scratch) =>
    team.run(parts, (part, call) => {
      const first = partBegin(batch, part, parts);
      const images = partBegin(batch, part + 1, parts) - first;
      const [source, result] = [from! + 4 * first * valuesFrom, to! + 4 * first * valuesTo];
      call(run, source, w!, result, images, ...args, scratch + part * scratchBytes);
    });
};

/** Returns the reason to refuse a node with an operand that is not f32, or undefined if all operands are f32. */
export const refusesOtherThanF32 = (node: KernelNode): string | undefined => {
  const other = [...node.inputs, ...node.outputs].find((spec) => spec.dtype !== "f32");
  return other === undefined ? undefined : `${node.op} runs on f32, not ${other.dtype}; cast its operands to f32`;
};

type ConvolutionOp = "conv2d" | "conv2d-backward-input" | "conv2d-backward-weight";

/** Implementation of a convolution or one of its gradients by direct sums. */
export interface DirectKernel {
  /** Returns the scratch bytes of one part. */
  readonly scratchBytes: (sizes: ConvolutionSizes) => number;
  /**
   * Creates the kernel call for a convolution of the given sizes.
   *
   * @param scratchBytes Bytes between the scratch regions of consecutive parts.
   */
  readonly bind: (sizes: ConvolutionSizes, team: Team, scratchBytes: number) => KernelCall;
}

/** Creates the kernel of a convolution or one of its gradients: Winograd if it is faster, otherwise direct sums. */
export const convolutionKernel = <Op extends ConvolutionOp>(
  op: Op,
  sizesOf: (node: KernelNode<OperatorParams[Op]>) => ConvolutionSizes,
  direct: DirectKernel,
  winograd: WinogradKernel,
): Kernel =>
  kernelOf<ConvolutionOp>({
    op,
    refuses: refusesOtherThanF32,
    scratchBytes: (node, threads) => {
      const sizes = sizesOf(node as KernelNode<OperatorParams[Op]>);
      // Must suffice for both methods: the build is not known here, and the scalar build always uses direct sums.
      return Math.max(
        threads * alignUp(direct.scratchBytes(sizes)),
        suitsWinograd(sizes) ? winograd.scratchBytes(sizes, threads) : 0,
      );
    },
    bind: (node, wasm, _, team) => {
      const sizes = sizesOf(node as KernelNode<OperatorParams[Op]>);
      return suitsWinograd(sizes) && wasm["hasWinograd"]!() === 1
        ? winograd.bind(sizes, team)
        : direct.bind(sizes, team, alignUp(direct.scratchBytes(sizes)));
    },
  });
