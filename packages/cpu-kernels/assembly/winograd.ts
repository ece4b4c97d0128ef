// 3 × 3 convolutions with stride 1 by Winograd's F(4, 3): 36 matrix products, one per pair of points, over tiles of 4 ×
// 4 results. The algorithm needs a quarter of the multiplications of direct sums. Sizes are in elements; channel counts
// are multiples of four. In the scalar build, the exports have no body, and the host binds the direct kernels.
import { TILE_ROWS, WINOGRAD_DEPTH, WINOGRAD_HEAD_BYTES, WINOGRAD_POINTS, WINOGRAD_SPACING } from "./blocks";
import { copyPadded } from "./convolution";
import { transpose4 } from "./lanes";
import { partBegin } from "./parts";
import { evenBlock, tile4, tile6, tileRows } from "./tile";
import { transformCotangents, transformKernelGradient, transformPixels, transformResults, transformTaps } from "./winograd-transforms";

const POINTS: usize = WINOGRAD_POINTS;
const SPACING: usize = WINOGRAD_SPACING;
/** Bytes of scratch for 36 vectors between the two passes of a transform. */
const BETWEEN_BYTES: usize = 576;

/** Whether this build implements the Winograd exports below. In other builds, the Winograd exports do nothing. */
export function hasWinograd(): bool {
  return ASC_FEATURE_SIMD;
}

/** Returns the number of panels of 8 packed columns. Unused columns of the last panel are zero. */
// @ts-ignore: decorator
@inline
function panelsOf(columns: i32): i32 {
  return (columns + 7) >> 3;
}

/**
 * Transforms the kernel to the 36 points and packs it as [point][panel of 8 columns][inner][8].
 *
 * `w` begins at the first of the `columns` columns. `tap` is the number of bytes between taps, `row` between input
 * channels. If `flipped`, packs the kernel of the input gradient, whose columns are the input channels and whose taps
 * are reversed. Computes part `part` of `parts`, a range of the panels.
 */
export function winogradTaps(
  w: usize, to: usize, inner: i32, columns: i32, tap: usize, row: usize, flipped: bool, scratch: usize, part: i32, parts: i32,
): void {
  if (ASC_FEATURE_SIMD) {
    const panels = panelsOf(columns);
    const panelBytes = (<usize>inner) << 5;
    const step = <usize>panels * panelBytes;
    const last = partBegin(panels, part + 1, parts);
    if (last == panels && columns & 7) {
      for (let k: usize = 0; k < POINTS; k++) memory.fill(to + k * step + <usize>(panels - 1) * panelBytes, 0, panelBytes);
    }
    const block = scratch + BETWEEN_BYTES; // four kernels of four columns
    for (let c = partBegin(panels, part, parts) << 3; c < min(columns, last << 3); c += 4) {
      const panel = to + ((<usize>((c >> 3) * inner)) << 5) + ((<usize>(c & 7)) << 2);
      if (flipped) {
        const from = w + <usize>c * row + 8 * tap;
        for (let q = 0; q < inner; q += 4) {
          for (let t: usize = 0; t < 9; t++) transpose4(from + ((<usize>q) << 2) - t * tap, row, block + (t << 4), 144);
          for (let k = 0; k < 4; k++) transformTaps(block + <usize>k * 144, 16, panel + ((<usize>(q + k)) << 5), step, scratch);
        }
      } else {
        const from = w + ((<usize>c) << 2);
        for (let q = 0; q < inner; q++) transformTaps(from + <usize>q * row, tap, panel + ((<usize>q) << 5), step, scratch);
      }
    }
  }
}

/**
 * Computes out[i][8 p + j] = Σ over k < depth of a(i, k) · panel(p)[k][j], or adds the sum if `adding`. a(i, k) is the
 * f32 at address table[i] + k · step. `table` and `outs` hold one address per row, also for unused rows in the last
 * tile.
 */
// @ts-ignore: decorator
@inline
function multiply(table: usize, outs: usize, rows: i32, depth: i32, step: usize, panel: usize, panels: i32, panelBytes: usize, adding: bool): void {
  for (let p = 0; p < panels; p++) {
    for (let i = 0; i < rows;) {
      const take = tileRows(rows - i);
      const at = (<usize>i) << 2;
      if (take == TILE_ROWS) tile6(table + at, 1, depth, step, panel, outs + at, (<usize>p) << 5, adding);
      else tile4(table + at, 1, depth, step, panel, outs + at, (<usize>p) << 5, adding);
      i += take;
    }
    panel += panelBytes;
  }
}

/**
 * Writes one address per row, `step` bytes apart, also for the unused rows of the last tile. If `repeat`, unused rows
 * have the address of the last row; otherwise the addresses continue after the last row.
 */
// @ts-ignore: decorator
@inline
function list(table: usize, from: usize, step: usize, rows: i32, repeat: bool): void {
  for (let i = 0; i < rows + TILE_ROWS; i++) {
    store<u32>(table + ((<usize>i) << 2), <u32>(from + <usize>(repeat ? min(i, rows - 1) : i) * step));
  }
}

/** Computes the 36 values of an image tile, with points `step` bytes apart. Pixels outside of the image are zero. */
// @ts-ignore: decorator
@inline
function pixelsOfTile(image: usize, height: i32, width: i32, channels: i32, y: i32, x: i32, to: usize, step: usize, patch: usize, between: usize): void {
  const pixel = (<usize>channels) << 2;
  let from = image + <usize>(y * width + x) * pixel;
  let row = <usize>width * pixel;
  if (y < 0 || x < 0 || y + 6 > height || x + 6 > width) {
    copyPadded(image, height, width, pixel, channels, y, x, 6, 6, patch);
    from = patch;
    row = 6 * pixel;
  }
  for (let c: usize = 0; c < pixel; c += 16) transformPixels(from + c, row, pixel, to + c, step, between);
}

/**
 * Computes the results of tiles [first, first + tiles) in the grid (images × ⌈outHeight / 4⌉ × ⌈outWidth / 4⌉),
 * `columns` columns per pixel, from a transformed kernel.
 *
 * `y` begins at the first column and has `outPixel` bytes per pixel. `block` is the number of tiles that are
 * transformed at a time. `scratch` (size computed in `src/winograd.ts`) holds the vectors between passes, addresses, a
 * patch, pixel values, and products.
 */
export function winogradTiles(
  x: usize, taps: usize, y: usize, height: i32, width: i32, inner: i32, columns: i32, outPixel: usize, outHeight: i32, outWidth: i32, top: i32, left: i32,
  first: i32, tiles: i32, block: i32, scratch: usize,
): void {
  if (ASC_FEATURE_SIMD) {
    const down = (outHeight + 3) >> 2, across = (outWidth + 3) >> 2;
    const pixel = (<usize>inner) << 2;
    const panels = panelsOf(columns);
    const product = (<usize>panels) << 5;
    const table = scratch + WINOGRAD_HEAD_BYTES;
    const outs = table + ((<usize>(block + TILE_ROWS)) << 2);
    const patch = outs + ((<usize>(block + TILE_ROWS)) << 2);
    const values = patch + POINTS * pixel;
    const valueStep = <usize>block * pixel + SPACING;
    const products = values + POINTS * valueStep;
    const productStep = <usize>(block + TILE_ROWS) * product + SPACING;
    const tapStep = (<usize>(panels * inner)) << 5;
    const depth = evenBlock(inner, WINOGRAD_DEPTH);
    for (let t0 = 0; t0 < tiles; t0 += block) {
      const some = min(block, tiles - t0);
      for (let t = 0; t < some; t++) {
        const tile = first + t0 + t;
        const image = x + <usize>(tile / (down * across) * height * width) * pixel;
        pixelsOfTile(
          image, height, width, inner, ((tile / across) % down << 2) - top, (tile % across << 2) - left,
          values + <usize>t * pixel, valueStep, patch, scratch,
        );
      }
      for (let k: usize = 0; k < POINTS; k++) {
        list(outs, products + k * productStep, product, some, false);
        for (let q = 0; q < inner; q += depth) {
          list(table, values + k * valueStep + ((<usize>q) << 2), pixel, some, true);
          multiply(table, outs, some, min(depth, inner - q), 4, taps + k * tapStep + ((<usize>q) << 5), panels, (<usize>inner) << 5, q > 0);
        }
      }
      for (let t = 0; t < some; t++) {
        const tile = first + t0 + t;
        const i = (tile / across) % down << 2, j = tile % across << 2;
        const to = y + <usize>((tile / (down * across) * outHeight + i) * outWidth + j) * outPixel;
        const from = products + <usize>t * product;
        for (let c: usize = 0; c < (<usize>columns) << 2; c += 16) {
          transformResults(from + c, productStep, to + c, <usize>outWidth * outPixel, outPixel, min(4, outHeight - i), min(4, outWidth - j), scratch);
        }
      }
    }
  }
}

/**
 * Computes the kernel gradient for `columns` output channels: 36 products between pixel values and cotangent values,
 * summed over all tiles.
 *
 * `g` and `w` begin at the first column, with `outPixel` bytes per pixel and per row. `scratch` holds the vectors
 * between passes, addresses, a patch, pixel values, cotangent values in panels, and sums.
 */
export function winogradKernelGradient(
  x: usize, g: usize, w: usize, batch: i32, height: i32, width: i32, channels: i32, columns: i32, outPixel: usize, outHeight: i32, outWidth: i32,
  top: i32, left: i32, block: i32, scratch: usize,
): void {
  if (ASC_FEATURE_SIMD) {
    const down = (outHeight + 3) >> 2, across = (outWidth + 3) >> 2;
    const tiles = batch * down * across;
    const pixel = (<usize>channels) << 2;
    const panels = panelsOf(columns);
    const sum = (<usize>panels) << 5;
    const most = max(channels, columns);
    const table = scratch + WINOGRAD_HEAD_BYTES;
    const outs = table + ((<usize>(channels + TILE_ROWS)) << 2);
    const patch = outs + ((<usize>(channels + TILE_ROWS)) << 2);
    const values = patch + POINTS * ((<usize>most) << 2);
    const valueStep = <usize>block * pixel + SPACING;
    const packed = values + POINTS * valueStep;
    const panelBytes = (<usize>block) << 5;
    const packedStep = <usize>panels * panelBytes + SPACING;
    const sums = packed + POINTS * packedStep;
    const sumStep = <usize>(channels + TILE_ROWS) * sum + SPACING;
    if (columns & 7) memory.fill(packed, 0, POINTS * packedStep);
    for (let t0 = 0; t0 < tiles; t0 += block) {
      const some = min(block, tiles - t0);
      for (let t = 0; t < some; t++) {
        const tile = t0 + t;
        const n = tile / (down * across);
        const i = (tile / across) % down << 2, j = tile % across << 2;
        pixelsOfTile(
          x + <usize>(n * height * width) * pixel, height, width, channels, i - top, j - left,
          values + <usize>t * pixel, valueStep, patch, scratch,
        );
        const image = g + <usize>(n * outHeight * outWidth) * outPixel;
        let from = image + <usize>(i * outWidth + j) * outPixel;
        let row = <usize>outWidth * outPixel, step = outPixel;
        if (i + 4 > outHeight || j + 4 > outWidth) {
          copyPadded(image, outHeight, outWidth, outPixel, columns, i, j, 4, 4, patch);
          from = patch;
          step = (<usize>columns) << 2;
          row = 4 * step;
        }
        for (let c = 0; c < columns; c += 4) {
          const to = packed + <usize>(c >> 3) * panelBytes + ((<usize>t) << 5) + ((<usize>(c & 7)) << 2);
          transformCotangents(from + ((<usize>c) << 2), row, step, to, packedStep, scratch);
        }
      }
      for (let k: usize = 0; k < POINTS; k++) {
        list(outs, sums + k * sumStep, sum, channels, false);
        list(table, values + k * valueStep, 4, channels, true);
        multiply(table, outs, channels, some, pixel, packed + k * packedStep, panels, panelBytes, t0 > 0);
      }
    }
    for (let q = 0; q < channels; q++) {
      const from = sums + <usize>q * sum;
      for (let c: usize = 0; c < (<usize>columns) << 2; c += 16) {
        transformKernelGradient(from + c, sumStep, w + <usize>q * outPixel + c, <usize>channels * outPixel, scratch);
      }
    }
  }
}
