import { TILE_ROWS, WINOGRAD_HEAD_BYTES, WINOGRAD_POINTS, WINOGRAD_SPACING } from "../assembly/blocks.ts";
import { alignUp } from "./arena.ts";
import { convolutionNanoseconds, type ConvolutionSizes, wholePanels } from "./contraction-scratch.ts";
import type { KernelCall } from "./kernel.ts";
import { partBegin, type Team } from "./team/team.ts";

/**
 * Number of columns per block. Only the transformed kernel of one block is in memory at a time, at most 18 KiB per
 * input channel.
 */
const columnBlock = 128;
/** Target size in bytes for the values and products of one tile block, which should stay in the L2 cache. */
const blockBytes = 2 ** 20;
/** Minimum and maximum number of tiles per block. Every block reads the complete kernel again. */
const [minTiles, maxTiles] = [24, 48];

/**
 * Costs of the transforms per tile and channel, and per entry of the kernel. Unit: multiplications that the product
 * computes in the same time. Measured; see `docs/experiments.md`.
 */
const transformCosts = { tileChannel: 512, kernelEntry: 1200 };
/**
 * Minimum ratio between the estimated costs of direct sums and Winograd at which Winograd is used. The ratio is larger
 * than 1 so that no shape becomes slower.
 */
const margin = 1.15;
/** Estimated nanoseconds to transform and pack one entry of the kernel. */
const kernelNanoseconds = 12;
/**
 * Batch size that the choice between Winograd and direct sums assumes. The actual batch size has no influence, because
 * the result for a sample must be bitwise identical alone and in a batch. With fewer small images, packing the kernel
 * costs more time than Winograd saves (1×8×8×64 ran at 0.65 of the speed of direct sums).
 */
const usualBatch = 16;

/**
 * Whether a convolution and its gradients are faster with Winograd's F(4, 3) than with direct sums, at the assumed
 * batch size. The answer is the same for the convolution and both gradients, and for every batch size. Therefore the
 * result of a sample does not depend on the split of the work, nor on other samples.
 */
export const suitsWinograd = (s: ConvolutionSizes): boolean => {
  const square = s.kernelHeight === 3 && s.kernelWidth === 3;
  const plain = s.strideY * s.strideX * s.dilationY * s.dilationX * s.groups === 1;
  if (!square || !plain || s.channels % 4 !== 0 || s.outChannels % 4 !== 0) return false;
  const entries = s.channels * s.outChannels;
  const direct = 9 * usualBatch * s.outHeight * s.outWidth * entries;
  const tiles = Math.max(tilesOf(usualBatch, s.outHeight, s.outWidth), tilesOf(usualBatch, s.height, s.width));
  const { tileChannel, kernelEntry } = transformCosts;
  const products = tiles * WINOGRAD_POINTS * entries;
  return direct > margin * (products + tiles * tileChannel * (s.channels + s.outChannels) + kernelEntry * entries);
};

/**
 * Sizes of a Winograd convolution with tiles of 4 × 4 results. The convolution is a forward convolution or an input
 * gradient.
 */
interface Tiling {
  readonly height: number;
  readonly width: number;
  readonly inner: number;
  readonly columns: number;
  readonly outHeight: number;
  readonly outWidth: number;
  readonly top: number;
  readonly left: number;
  readonly tiles: number;
}

const tilesOf = (batch: number, height: number, width: number): number =>
  batch * Math.ceil(height / 4) * Math.ceil(width / 4);

const forwardTiling = (s: ConvolutionSizes): Tiling => ({
  ...s,
  inner: s.channels,
  columns: s.outChannels,
  tiles: tilesOf(s.batch, s.outHeight, s.outWidth),
});

const inputGradientTiling = (s: ConvolutionSizes): Tiling => ({
  height: s.outHeight,
  width: s.outWidth,
  inner: s.outChannels,
  columns: s.channels,
  outHeight: s.height,
  outWidth: s.width,
  top: 2 - s.top,
  left: 2 - s.left,
  tiles: tilesOf(s.batch, s.height, s.width),
});

const blockOf = (inner: number, columns: number, tiles: number): number => {
  const fitting = Math.floor(blockBytes / (4 * WINOGRAD_POINTS * (inner + columns)));
  const bounded = Math.max(minTiles, Math.min(maxTiles, fitting));
  return Math.min(tiles, Math.floor(bounded / TILE_ROWS) * TILE_ROWS);
};

const kernelBytes = ({ inner, columns }: Tiling): number =>
  4 * WINOGRAD_POINTS * inner * wholePanels(Math.min(columnBlock, columns));

const tilesBytes = ({ inner, columns, tiles }: Tiling): number => {
  const wide = Math.min(columnBlock, columns);
  const block = blockOf(inner, wide, tiles);
  return (
    WINOGRAD_HEAD_BYTES +
    8 * (block + TILE_ROWS) +
    4 * WINOGRAD_POINTS * inner +
    WINOGRAD_POINTS * (4 * block * inner + 4 * (block + TILE_ROWS) * wholePanels(wide) + 2 * WINOGRAD_SPACING)
  );
};

const gradientBytes = ({ channels, outChannels, ...s }: ConvolutionSizes): number => {
  const wide = Math.min(columnBlock, outChannels);
  const block = blockOf(channels, wide, tilesOf(s.batch, s.outHeight, s.outWidth));
  const panels = wholePanels(wide);
  return (
    WINOGRAD_HEAD_BYTES +
    8 * (channels + TILE_ROWS) +
    4 * WINOGRAD_POINTS * Math.max(channels, wide) +
    WINOGRAD_POINTS * (4 * block * (channels + panels) + 4 * (channels + TILE_ROWS) * panels + 3 * WINOGRAD_SPACING)
  );
};

/** Calls `work(first, count)` for each block of columns, with the block's first column and number of columns. */
const forColumns = (columns: number, work: (first: number, count: number) => void): void => {
  for (let first = 0; first < columns; first += columnBlock) work(first, Math.min(columnBlock, columns - first));
};

/**
 * Estimates the time of a Winograd convolution in one thread, in nanoseconds: half of the time T of a direct
 * convolution. The products take T/4, and the transforms take at most 3T/4.
 */
const nanoseconds = (s: ConvolutionSizes): number => convolutionNanoseconds(s) / 2;

const bindTiles = (s: ConvolutionSizes, t: Tiling, flipped: boolean, team: Team): KernelCall => {
  const [pack, run] = [team.indexOf("winogradTaps"), team.indexOf("winogradTiles")];
  const [tap, row] = [4 * s.channels * s.outChannels, 4 * s.outChannels];
  const block = blockOf(t.inner, Math.min(columnBlock, t.columns), t.tiles);
  const blocks = Math.ceil(t.tiles / block);
  const { height, width, inner, outHeight, outWidth, top, left, tiles } = t;
  const image = [outHeight, outWidth, top, left];
  const scratchBytes = alignUp(tilesBytes(t));
  return ([x, w], [y], taps) => {
    const scratch = taps + alignUp(kernelBytes(t));
    const scratchOf = (part: number): number => scratch + part * scratchBytes;
    forColumns(t.columns, (first, count) => {
      const from = w! + (flipped ? first * row : 4 * first);
      const panels = Math.ceil(count / 8);
      const packs = team.partsOf(kernelNanoseconds * inner * count, panels);
      team.run(packs, (part, call) =>
        call(pack, from, taps, inner, count, tap, row, Number(flipped), scratchOf(part), part, packs),
      );
      const [to, outPixel] = [y! + 4 * first, 4 * t.columns];
      const parts = team.partsOf((nanoseconds(s) * count) / t.columns, blocks);
      // Threads share complete blocks, so that each tile is computed together with the same tiles for any number of
      // threads.
      team.run(parts, (part, call) => {
        const begin = block * partBegin(blocks, part, parts);
        const end = Math.min(tiles, block * partBegin(blocks, part + 1, parts));
        const some = [begin, end - begin, block] as const;
        call(run, x!, taps, to, height, width, inner, count, outPixel, ...image, ...some, scratchOf(part));
      });
    });
  };
};

const bindGradient = (s: ConvolutionSizes, team: Team): KernelCall => {
  const run = team.indexOf("winogradKernelGradient");
  const { batch, height, width, channels, outChannels, outHeight, outWidth, top, left } = s;
  const block = blockOf(channels, Math.min(columnBlock, outChannels), tilesOf(batch, outHeight, outWidth));
  const image = [batch, height, width, channels] as const;
  const sizes = [outHeight, outWidth, top, left, block] as const;
  const scratchBytes = alignUp(gradientBytes(s));
  return ([x, g], [w], scratch) =>
    forColumns(outChannels, (first, count) => {
      const panels = Math.ceil(count / 8);
      const parts = team.partsOf((nanoseconds(s) * count) / outChannels, panels);
      // Sums run over all tiles, so threads share columns. Each part transforms the pixels that it needs.
      team.run(parts, (part, call) => {
        const begin = 8 * partBegin(panels, part, parts);
        const columns = Math.min(count, 8 * partBegin(panels, part + 1, parts)) - begin;
        const column = 4 * (first + begin);
        const outPixel = 4 * outChannels;
        const to = scratch + part * scratchBytes;
        call(run, x!, g! + column, w! + column, ...image, columns, outPixel, ...sizes, to);
      });
    });
};

/**
 * Implementation of a convolution or one of its gradients by Winograd's F(4, 3), for sizes that `suitsWinograd`
 * accepts.
 */
export interface WinogradKernel {
  readonly scratchBytes: (sizes: ConvolutionSizes, threads: number) => number;
  readonly bind: (sizes: ConvolutionSizes, team: Team) => KernelCall;
}

const tilingBytes = (t: Tiling, threads: number): number => alignUp(kernelBytes(t)) + threads * alignUp(tilesBytes(t));

export const winogradForward: WinogradKernel = {
  scratchBytes: (s, threads) => tilingBytes(forwardTiling(s), threads),
  bind: (s, team) => bindTiles(s, forwardTiling(s), false, team),
};

export const winogradInputGradient: WinogradKernel = {
  scratchBytes: (s, threads) => tilingBytes(inputGradientTiling(s), threads),
  bind: (s, team) => bindTiles(s, inputGradientTiling(s), true, team),
};

export const winogradWeightGradient: WinogradKernel = {
  scratchBytes: (s, threads) => threads * alignUp(gradientBytes(s)),
  bind: bindGradient,
};
