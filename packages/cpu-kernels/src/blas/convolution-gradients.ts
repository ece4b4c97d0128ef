import { alignUp } from "../arena.ts";
import { type ConvolutionSizes, isPlainProduct } from "../contraction-scratch.ts";
import { type Call, partBegin } from "../team/team.ts";
import { type BindConvolution, bindRows } from "./bind-convolution.ts";
import { multiplyAddNanoseconds } from "../blas.ts";
import {
  blockOf,
  blocksOf,
  columnBytes,
  columnNanoseconds,
  patchArguments,
  pixelAt,
  productOf,
} from "./column-matrix.ts";

/** Half-open range [begin, end). */
type Range = readonly [begin: number, end: number];

/** Nanoseconds per value that is set to zero, in one thread. */
const fillNanoseconds = 0.1;

/** Returns the range of image rows, numbered over the batch, that the taps of a pixel block may read. */
const touchedRows = (s: ConvolutionSizes, first: number, count: number): [begin: number, end: number] => {
  const [from, to] = [Math.floor(first / s.outWidth), Math.floor((first + count - 1) / s.outWidth)];
  const top = (from % s.outHeight) * s.strideY - s.top;
  const bottom = (to % s.outHeight) * s.strideY - s.top + (s.kernelHeight - 1) * s.dilationY + 1;
  const inside = (row: number): number => Math.max(0, Math.min(s.height, row));
  return [
    Math.floor(from / s.outHeight) * s.height + inside(top),
    Math.floor(to / s.outHeight) * s.height + inside(bottom),
  ];
};

/** Returns the range of output pixels whose taps may read input rows `begin` … `end` − 1, numbered over the batch. */
const touchingPixels = (s: ConvolutionSizes, begin: number, end: number): [begin: number, end: number] => {
  const last = end - 1;
  const above = (begin % s.height) + s.top - (s.kernelHeight - 1) * s.dilationY;
  const from = Math.max(0, Math.min(s.outHeight, Math.ceil(above / s.strideY)));
  const to = Math.min(s.outHeight, Math.floor(((last % s.height) + s.top) / s.strideY) + 1);
  return [
    (Math.floor(begin / s.height) * s.outHeight + from) * s.outWidth,
    (Math.floor(last / s.height) * s.outHeight + to) * s.outWidth,
  ];
};

/**
 * Computes the gradient of the images. A product computes each block of the column matrix, which is added to the images
 * while it is in the cache. Threads share rows of the images, so that only one thread adds to each pixel, in the order
 * of the taps. Most values that a thread adds were computed by the same thread.
 */
export const inputGradient: BindConvolution = (s, team, slices) => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  if (isPlainProduct(s))
    return bindRows(team, slices, {
      rows: pixels,
      columns: depth,
      inner: outChannels,
      flags: [0, 1],
      aRow: outChannels,
      aStride: outChannels,
      bStride: outChannels,
    });
  const values = s.batch * s.height * s.width * s.channels;
  const image = patchArguments(s);
  const fill = team.indexOf("fill32");
  const sgemm = team.indexOf("sgemm");
  const addPatches = team.indexOf("addPatches");
  const blocks = blocksOf(s);
  const block = blockOf(s);
  const parts = team.partsOf(block * depth * outPerGroup * multiplyAddNanoseconds, slices.most(block));
  const adders = team.partsOf(block * depth * columnNanoseconds, Infinity);
  const fillers = team.partsOf(values * fillNanoseconds, values);
  return ([g, w], [x], columns) => {
    team.run(fillers, (part, call) => {
      const begin = partBegin(values, part, fillers);
      call(fill, x! + 4 * begin, 0, partBegin(values, part + 1, fillers) - begin);
    });
    for (const { first, count, inImage, inResult } of blocks) {
      team.run(parts, (part, call) => {
        const begin = slices.begin(count, part, parts);
        const rows = slices.begin(count, part + 1, parts) - begin;
        if (rows === 0) return;
        const [gradient, to] = [pixelAt(g!, s, first + begin) + inResult, columns + 4 * begin * depth];
        const [weights, stride] = [w! + inResult, outChannels];
        call(sgemm, 0, 1, rows, depth, outPerGroup, 1, gradient, stride, weights, stride, 0, to, depth, 1, 0, 0, 0);
      });
      const [top, bottom] = touchedRows(s, first, count);
      team.run(adders, (part, call) => {
        const begin = top + partBegin(bottom - top, part, adders);
        const end = top + partBegin(bottom - top, part + 1, adders);
        if (begin >= end) return;
        const touching = touchingPixels(s, begin, end);
        const [from, to] = [Math.max(first, touching[0]), Math.min(first + count, touching[1])];
        if (from < to)
          call(addPatches, columns + 4 * (from - first) * depth, x! + inImage, ...image, from, to - from, begin, end);
      });
    }
  };
};

/**
 * Computes the gradient of the weights. Blocks of the column matrix are copied from the images, and multiplied by the
 * gradients of their pixels. Threads share columns of the matrix, which are rows of the product. Each thread copies the
 * columns that it multiplies, so threads exchange no data. If the product cannot be split, threads share only the
 * copying.
 */
export const weightGradient: BindConvolution = (s, team, slices) => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  if (isPlainProduct(s))
    return bindRows(team, slices, {
      rows: depth,
      columns: outChannels,
      inner: pixels,
      flags: [1, 0],
      aRow: 1,
      aStride: depth,
      bStride: outChannels,
    });
  const image = patchArguments(s);
  const patches = team.indexOf("patches");
  const sgemm = team.indexOf("sgemm");
  const blocks = blocksOf(s);
  const block = blockOf(s);
  const blockBytes = alignUp(columnBytes(s));
  const [product, copy] = [block * depth * outPerGroup * multiplyAddNanoseconds, block * depth * columnNanoseconds];
  const parts = team.partsOf(blocks.length * (product + copy), slices.most(depth));
  const copyPixels = (call: Call, x: number, to: number, i: number, rows: Range, columns: Range): void => {
    const { first, inImage } = blocks[i]!;
    if (rows[0] < rows[1]) call(patches, x + inImage, to, ...image, first + rows[0], rows[1] - rows[0], ...columns);
  };
  const multiply = (call: Call, from: number, g: number, w: number, i: number, [begin, end]: Range): void => {
    const { first, count, inResult } = blocks[i]!;
    const [gradient, stride, beta] = [pixelAt(g, s, first) + inResult, outChannels, first > 0 ? 1 : 0];
    const [rows, to] = [end - begin, w + inResult + 4 * begin * outChannels];
    call(sgemm, 1, 0, rows, outPerGroup, count, 1, from, rows, gradient, stride, beta, to, stride, 1, 0, 0, 0);
  };
  const copiers = parts > 1 ? 1 : team.partsOf(copy, block);
  if (copiers === 1)
    return ([x, g], [w], scratch) =>
      team.run(parts, (part, call) => {
        const columns: Range = [slices.begin(depth, part, parts), slices.begin(depth, part + 1, parts)];
        if (columns[0] === columns[1]) return;
        const to = scratch + part * blockBytes;
        blocks.forEach(({ count }, i) => {
          copyPixels(call, x!, to, i, [0, count], columns);
          multiply(call, to, g!, w!, i, columns);
        });
      });
  return ([x, g], [w], scratch) =>
    blocks.forEach(({ count }, i) => {
      team.run(copiers, (part, call) => {
        const rows: Range = [partBegin(count, part, copiers), partBegin(count, part + 1, copiers)];
        copyPixels(call, x!, scratch + 4 * rows[0] * depth, i, rows, [0, depth]);
      });
      team.run(1, (_, call) => multiply(call, scratch, g!, w!, i, [0, depth]));
    });
};
