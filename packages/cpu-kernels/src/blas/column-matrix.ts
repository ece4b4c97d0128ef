import { type ConvolutionSizes, isPlainProduct } from "../contraction-scratch.ts";

/**
 * Number of values of the column matrix that are computed at a time, 1 MiB. A block of this size is still in the
 * second-level cache when the product reads it, and has enough rows to amortize the library's packing of the weights.
 */
const columnValues = 2 ** 18;

/** Returns the sizes of the product that computes a convolution: pixels × columns of the column matrix, per group. */
export const productOf = (
  s: ConvolutionSizes,
): { pixels: number; depth: number; perGroup: number; outPerGroup: number } => {
  const perGroup = s.channels / s.groups;
  return {
    pixels: s.batch * s.outHeight * s.outWidth,
    depth: s.kernelHeight * s.kernelWidth * perGroup,
    perGroup,
    outPerGroup: s.outChannels / s.groups,
  };
};

/** Returns the number of pixels per block of the column matrix. */
export const blockOf = (s: ConvolutionSizes): number => {
  const { pixels, depth } = productOf(s);
  return Math.max(1, Math.min(pixels, Math.floor(columnValues / Math.max(1, depth))));
};

export const columnBytes = (s: ConvolutionSizes): number =>
  isPlainProduct(s) ? 0 : 4 * blockOf(s) * productOf(s).depth;

/** Whether a convolution has nothing to sum: its sums have no terms, or its result has no elements. */
export const isEmpty = (s: ConvolutionSizes): boolean => productOf(s).depth * productOf(s).pixels * s.outChannels === 0;

/**
 * Returns the arguments of `patches` and `addPatches` after the two addresses: the sizes of the image and of the
 * convolution.
 */
export const patchArguments = (s: ConvolutionSizes): number[] => [
  s.height,
  s.width,
  s.channels,
  s.channels / s.groups,
  s.kernelHeight,
  s.kernelWidth,
  s.outHeight,
  s.outWidth,
  s.strideY,
  s.strideX,
  s.top,
  s.left,
  s.dilationY,
  s.dilationX,
];

/**
 * A block of pixels in one channel group: the first pixel, the number of pixels, and the byte offset of the group's
 * channels within an image pixel and within a result pixel.
 */
export interface PixelBlock {
  readonly first: number;
  readonly count: number;
  readonly inImage: number;
  readonly inResult: number;
}

export const blocksOf = (s: ConvolutionSizes): PixelBlock[] => {
  const { pixels, perGroup, outPerGroup } = productOf(s);
  const block = blockOf(s);
  const firsts = Array.from({ length: Math.ceil(pixels / block) }, (_, i) => i * block);
  return Array.from({ length: s.groups }, (_, group) =>
    firsts.map((first) => ({
      first,
      count: Math.min(block, pixels - first),
      inImage: 4 * group * perGroup,
      inResult: 4 * group * outPerGroup,
    })),
  ).flat();
};

/** Returns the address of a pixel's channels in y or in its gradient. */
export const pixelAt = (y: number, s: ConvolutionSizes, pixel: number): number => y + 4 * pixel * s.outChannels;

/** Nanoseconds per value written to or read from the column matrix, in one thread. */
export const columnNanoseconds: number = 0.3;
