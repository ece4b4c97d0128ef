import { wasmBase64 } from "./generated/resample.ts";
import { filterCurves, type ResamplingFilter } from "./resampling-filters.ts";

// Pillow's way of resizing, bit by bit, which most data sets of PyTorch's are brought to a size by:
// src/libImaging/Resample.c and Geometry.c of Pillow 9.4.

/** Bits behind the point of weights, so that a sum of bytes fits 32 bits. */
const precisionBits = 22;

/** Weights of source pixels for each pixel of a row or a column. */
interface Weights {
  /** How many each has room for. */
  readonly taps: number;
  /** The first source pixel of each. */
  readonly first: Int32Array;
  /** How many count. */
  readonly count: Int32Array;
  /** Fixed point, `taps` of each. */
  readonly weights: Int32Array;
}

/** What of a row or a column becomes what of one. */
interface Stretch {
  /** Part of the source, in pixels, as Pillow keeps it: in 32 bits. */
  readonly begin: number;
  readonly end: number;
  /** Pixels that it becomes. */
  readonly target: number;
  /** Those of them that are wanted, from `skipped` on. */
  readonly wanted: number;
}

const skippedOf = ({ target, wanted }: Stretch): number => (target - wanted) >> 1;

/** A filter's curve, as wide as it is in pixels of the coarser grid, around the middle of each target pixel. */
const weightsOf = (filter: Exclude<ResamplingFilter, "nearest">, size: number, stretch: Stretch): Weights => {
  const { support: wide, weight } = filterCurves[filter];
  const { begin, end, target, wanted } = stretch;
  const scale = Math.fround(end - begin) / target;
  const skipped = skippedOf(stretch);
  const coarse = Math.max(1, scale);
  const support = wide * coarse;
  const taps = Math.ceil(support) * 2 + 1;
  const [first, count] = [new Int32Array(wanted), new Int32Array(wanted)];
  const weights = new Int32Array(wanted * taps);
  const exact = new Float64Array(taps);
  for (let at = 0; at < wanted; at++) {
    const centre = begin + (skipped + at + 0.5) * scale;
    const from = Math.max(0, Math.trunc(centre - support + 0.5));
    const many = Math.min(size, Math.trunc(centre + support + 0.5)) - from;
    let sum = 0;
    for (let i = 0; i < many; i++) {
      exact[i] = weight((i + from - centre + 0.5) * (1 / coarse));
      sum += exact[i]!;
    }
    first[at] = from;
    count[at] = many;
    for (let i = 0; i < many; i++) {
      const fixed = (exact[i]! / sum) * 2 ** precisionBits;
      weights[at * taps + i] = Math.trunc(fixed + (fixed < 0 ? -0.5 : 0.5));
    }
  }
  return { taps, first, count, weights };
};

/** The source pixel of each target pixel, added up step by step, as Pillow rounds it. */
const nearestPixels = (stretch: Stretch): Int32Array => {
  const { begin, end, target, wanted } = stretch;
  const step = Math.fround(end - begin) / target;
  const skipped = skippedOf(stretch);
  const places = new Int32Array(wanted);
  for (let at = -skipped, place = begin + step * 0.5; at < wanted; at++, place += step)
    if (at >= 0) places[at] = Math.trunc(place);
  return places;
};

/** Red, green and blue. */
export const channels = 3;

/** An image of bytes, u8 [rows, columns, 3]. */
export interface Pixels {
  readonly bytes: Uint8Array;
  readonly rows: number;
  readonly columns: number;
}

/** Larger images are rare, and a resampler's room for them would stay taken. */
export const mostPixelsKept: number = 2 ** 26;

/** A part of an image, in pixels, which may begin and end within one. */
export interface Box {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

const pickPixels = ({ bytes, columns }: Pixels, down: Int32Array, across: Int32Array): Uint8Array => {
  const result = new Uint8Array(down.length * across.length * channels);
  let to = 0;
  for (const row of down)
    for (const column of across)
      for (let channel = 0; channel < channels; channel++)
        result[to++] = bytes[(row * columns + column) * channels + channel]!;
  return result;
};

/** See assembly/index.ts; all but numbers of rows, columns and lines are places in memory. */
interface Exports {
  acrossColumns(
    from: number,
    rows: number,
    columns: number,
    to: number,
    target: number,
    taps: number,
    first: number,
    count: number,
    weights: number,
  ): void;
  acrossRows(
    from: number,
    firstLine: number,
    lineBytes: number,
    to: number,
    target: number,
    taps: number,
    first: number,
    count: number,
    weights: number,
  ): void;
}

const pageBytes = 2 ** 16;
/** What is read and written behind the ends of pixels, and more: parts begin at multiples of it. */
const paddingBytes = 16;

/**
 * Brings images to a size, in memory of its own, which is as large as the largest image wanted. One for each thread.
 *
 * In WebAssembly, since a loop over typed arrays takes four times as long (0.54 against 0.12 ms, 256² to 64²).
 */
export class Resampler {
  private readonly memory: WebAssembly.Memory = new WebAssembly.Memory({ initial: 1 });
  private readonly exports: Exports;
  private end = 0;

  constructor() {
    const bytes = Uint8Array.from(atob(wasmBase64), (character) => character.charCodeAt(0));
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory: this.memory } });
    this.exports = instance.exports as unknown as Exports;
  }

  /** Room for so many bytes behind those that were given away. */
  private take(bytes: number): number {
    const begin = this.end;
    this.end = (Math.ceil((begin + bytes) / paddingBytes) + 1) * paddingBytes;
    const missing = this.end - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / pageBytes));
    return begin;
  }

  private put(array: Uint8Array | Int32Array): number {
    const place = this.take(array.byteLength);
    new Uint8Array(this.memory.buffer).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), place);
    return place;
  }

  /**
   * Bring a part of an image to a size: each target pixel is a weighted mean of the pixels that it covers, and of those
   * about it, as far as the filter reaches; `nearest` is the one in its middle. The same bits as Pillow's
   * `image.resize((columns, rows), filter, box)`.
   *
   * @param box not empty, within the image. Default: all of it.
   * @param filter default: bilinear.
   * @param shown rows and columns of the middle of it that is wanted; half of what is left out, rounded down, lies
   * before it. Default: all of it.
   * @returns u8 [rows, columns, 3] of what is shown; the image's own bytes where nothing changes, else memory that is
   * valid until the next call.
   * Cost: each pixel of the box counts for about 2·support columns of the target, then what comes of it for as many
   * rows.
   */
  resample(
    image: Pixels,
    size: readonly [number, number],
    box: Box = { top: 0, left: 0, bottom: image.rows, right: image.columns },
    filter: ResamplingFilter = "bilinear",
    [rows, columns]: readonly [number, number] = size,
  ): Uint8Array {
    const isWide = columns !== image.columns || size[1] !== columns || box.left !== 0 || box.right !== columns;
    const isHigh = rows !== image.rows || size[0] !== rows || box.top !== 0 || box.bottom !== rows;
    if (!isWide && !isHigh) return image.bytes.subarray(0, rows * columns * channels);
    const stretchOf = (begin: number, end: number, target: number, wanted: number): Stretch => ({
      begin: Math.fround(begin),
      end: Math.fround(end),
      target,
      wanted,
    });
    const height = stretchOf(box.top, box.bottom, size[0], rows);
    const width = stretchOf(box.left, box.right, size[1], columns);
    if (filter === "nearest") return pickPixels(image, nearestPixels(height), nearestPixels(width));
    this.end = 0;
    const down = weightsOf(filter, image.rows, height);
    const [firstRow, lastRow] = isHigh
      ? [down.first[0]!, down.first[rows - 1]! + down.count[rows - 1]!]
      : [0, image.rows];
    const across = isWide ? weightsOf(filter, image.columns, width) : undefined;
    const sourceLine = image.columns * channels;
    const targetLine = columns * channels;
    let lines = this.put(image.bytes.subarray(firstRow * sourceLine, lastRow * sourceLine));
    const placed = ({ first, count, weights }: Weights): [number, number, number] => [
      this.put(first),
      this.put(count),
      this.put(weights),
    ];
    if (across !== undefined) {
      const to = this.take((lastRow - firstRow) * targetLine);
      this.exports.acrossColumns(lines, lastRow - firstRow, image.columns, to, columns, across.taps, ...placed(across));
      lines = to;
    }
    if (isHigh) {
      const to = this.take(rows * targetLine);
      this.exports.acrossRows(lines, firstRow, targetLine, to, rows, down.taps, ...placed(down));
      lines = to;
    }
    return new Uint8Array(this.memory.buffer, lines, rows * targetLine);
  }
}
