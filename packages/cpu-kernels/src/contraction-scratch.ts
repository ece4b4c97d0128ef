import {
  COLUMN_BLOCK,
  FEW_CHANNELS,
  INNER_BLOCK,
  PIXEL_BLOCK,
  PRODUCT_HEAD_BYTES,
  ROW_BLOCK,
  SUM_BLOCK,
  TAP_BLOCK,
  TAP_BYTES,
  TILE_BYTES,
  TILE_ROWS,
} from "../assembly/blocks.ts";

/** Estimated nanoseconds per multiply-add of a WebAssembly contraction, in one thread. */
export const multiplyAddNanoseconds: number = 1 / 30;

const align16 = (bytes: number): number => Math.ceil(bytes / 16) * 16;
/** Rounds a number of columns up to complete panels of 8. */
export const wholePanels = (columns: number): number => Math.ceil(columns / 8) * 8;
/** Returns the size of the equal blocks, at most `limit`, into which the kernels divide `size`. */
const evenBlock = (size: number, limit: number): number => Math.ceil(size / Math.max(1, Math.ceil(size / limit)));

/**
 * Returns the scratch bytes of one matrix product. The transposes determine which operand is packed; the size is
 * sufficient for either operand.
 */
export const productScratchBytes = (rows: number, columns: number, inner: number): number => {
  const longest = Math.max(rows, columns);
  const panels = Math.min(COLUMN_BLOCK, wholePanels(longest));
  const packedRows = Math.min(ROW_BLOCK, longest) + TILE_ROWS;
  return PRODUCT_HEAD_BYTES + 4 * Math.min(INNER_BLOCK, inner) * (panels + packedRows);
};

/** Sizes of a convolution in elements, in the order in which the kernels expect them. */
export interface ConvolutionSizes {
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly kernelHeight: number;
  readonly kernelWidth: number;
  readonly outChannels: number;
  readonly outHeight: number;
  readonly outWidth: number;
  readonly strideY: number;
  readonly strideX: number;
  readonly top: number;
  readonly left: number;
  readonly dilationY: number;
  readonly dilationX: number;
  readonly groups: number;
}

/** Estimates the nanoseconds of a convolution or one of its gradients, in one thread. */
export const convolutionNanoseconds = (s: ConvolutionSizes): number =>
  (multiplyAddNanoseconds *
    (s.batch * s.outHeight * s.outWidth * s.kernelHeight * s.kernelWidth * s.channels * s.outChannels)) /
  s.groups;

/** Whether a convolution runs as one matrix product: the kernel is 1×1 and reads all pixels. */
export const isPlainProduct = (sizes: ConvolutionSizes): boolean =>
  sizes.kernelHeight * sizes.kernelWidth * sizes.strideY * sizes.strideX * sizes.groups === 1 &&
  sizes.height === sizes.outHeight &&
  sizes.width === sizes.outWidth;

/**
 * Returns the scratch bytes of an indirect GEMM: edge addresses, tile, zeros, result addresses, addresses of taps (or
 * copied columns), panels.
 */
const gatherScratchBytes = (taps: number, inner: number, columns: number): number => {
  const block = Math.max(1, evenBlock(taps, Math.max(1, Math.floor(TAP_BLOCK / Math.max(1, inner)))));
  const words = (PIXEL_BLOCK + TILE_ROWS) * (inner < FEW_CHANNELS ? block * inner + 1 : block);
  return (
    align16(TAP_BYTES * taps) +
    32 +
    TILE_BYTES +
    align16(4 * inner) +
    4 * (PIXEL_BLOCK + 8) +
    align16(4 * words) +
    4 * block * inner * wholePanels(columns)
  );
};

/** Whether every group has one input and one output channel. */
export const isDepthwise = ({ channels, outChannels, groups }: ConvolutionSizes): boolean =>
  channels === groups && outChannels === groups && groups > 1;

/**
 * Returns the scratch size of a depthwise convolution in bytes: the list of all taps, and two lists of the taps that
 * are inside the image.
 */
const depthwiseScratchBytes = (sizes: ConvolutionSizes): number => {
  const taps = sizes.kernelHeight * sizes.kernelWidth;
  return 2 * align16(TAP_BYTES * taps);
};

/** Returns the scratch bytes of `conv2d`. */
export const convolutionScratchBytes = (sizes: ConvolutionSizes): number => {
  if (isPlainProduct(sizes))
    return productScratchBytes(sizes.batch * sizes.height * sizes.width, sizes.outChannels, sizes.channels);
  if (isDepthwise(sizes)) return depthwiseScratchBytes(sizes);
  const [inner, columns] = [sizes.channels / sizes.groups, sizes.outChannels / sizes.groups];
  return gatherScratchBytes(sizes.kernelHeight * sizes.kernelWidth, inner, columns);
};

/** Returns the scratch bytes of `conv2d-backward-input`. */
export const inputGradientScratchBytes = (sizes: ConvolutionSizes): number => {
  if (isPlainProduct(sizes))
    return productScratchBytes(sizes.batch * sizes.height * sizes.width, sizes.channels, sizes.outChannels);
  if (isDepthwise(sizes)) return depthwiseScratchBytes(sizes);
  // Each phase uses a subset of the taps. Blocks of taps are of equal size, so more taps may give smaller blocks.
  // Therefore the maximum over all tap counts is used.
  const all = sizes.kernelHeight * sizes.kernelWidth;
  const bytes = Array.from({ length: all }, (_, i) =>
    gatherScratchBytes(i + 1, sizes.outChannels / sizes.groups, sizes.channels / sizes.groups),
  );
  return align16(TAP_BYTES * all) + Math.max(0, ...bytes);
};

/**
 * Returns the scratch bytes of `conv2d-backward-weight`: edge addresses, results, tile, addresses, padded image block,
 * panels.
 */
export const weightGradientScratchBytes = (sizes: ConvolutionSizes): number => {
  const { batch, kernelHeight, kernelWidth, outHeight, outWidth, strideY, strideX, dilationY, dilationX, groups } =
    sizes;
  if (isPlainProduct(sizes))
    return productScratchBytes(sizes.channels, sizes.outChannels, batch * sizes.height * sizes.width);
  if (isDepthwise(sizes)) return 0;
  const perGroup = sizes.channels / groups;
  const images = Math.max(1, Math.min(batch, Math.floor(SUM_BLOCK / Math.max(1, outHeight * outWidth))));
  const rows = Math.max(1, evenBlock(outHeight, Math.max(1, Math.floor(SUM_BLOCK / Math.max(1, outWidth)))));
  const pixels = images * rows * outWidth;
  const paddedRows = (rows - 1) * strideY + (kernelHeight - 1) * dilationY + 1;
  const paddedWidth = (outWidth - 1) * strideX + (kernelWidth - 1) * dilationX + 1;
  return (
    64 +
    TILE_BYTES +
    align16(4 * TILE_ROWS * images * rows) +
    align16(4 * (images * paddedRows * paddedWidth * perGroup)) +
    4 * pixels * wholePanels(sizes.outChannels / groups)
  );
};
