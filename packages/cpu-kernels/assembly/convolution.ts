// Convolution of NHWC images with HWIO weights, and its two gradients, as matrix products. The rows of these products
// are pixels, which are read by address. The column matrix (im2col) is only written, block by block, if a pixel has so
// few channels that addresses would cost more.
import { FEW_CHANNELS, PIXEL_BLOCK, SUM_BLOCK, TAP_BLOCK, TAP_BYTES, TILE_BYTES, TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { depthwise, depthwiseBackwardWeight } from "./depthwise";
import { gemm, gemmPart } from "./gemm";
import { packPanels } from "./pack";
import { partBegin } from "./parts";
import { copyTile, evenBlock, tile4, tile6, tileRows } from "./tile";

// @ts-ignore: decorator
@inline
function tapsPerBlock(taps: i32, inner: i32): i32 {
  return max(1, evenBlock(taps, max(1, TAP_BLOCK / max(1, inner))));
}

// @ts-ignore: decorator
@inline
function align16(bytes: i32): i32 {
  return (bytes + 15) & ~15;
}

/**
 * Returns the size in words of the table of tap addresses for a pixel block. With few channels, the table has one
 * address and one row of the column matrix per pixel.
 */
// @ts-ignore: decorator
@inline
function tableWords(block: i32, inner: i32): i32 {
  return (PIXEL_BLOCK + TILE_ROWS) * (inner < FEW_CHANNELS ? block * inner + 1 : block);
}

/**
 * Writes the tap addresses of pixels [first, first + count) in the grid (images × rows × across), and the result
 * addresses.
 *
 * A tile's addresses are stored together, [tap][tile row], in the order in which `tile6` reads them. Tile p begins at
 * table + p · taps words. With few channels, the values themselves are copied, [pixel][tap][channel], after the
 * addresses, and each row has a single address, the address of its copy.
 */
function addressPixels(
  source: usize, height: i32, width: i32, sourcePixel: usize, inner: i32, stepY: i32, stepX: i32, tapList: usize, taps: i32,
  result: usize, imageBytes: usize, rowBytes: usize, pixelBytes: usize, rows: i32, across: i32, first: i32, count: i32,
  table: usize, outs: usize, zeros: usize,
): void {
  const few = inner < FEW_CHANNELS;
  // Pixels whose taps are all inside the image need no test per tap, because each tap has a fixed offset.
  let lowY = 0, highY = 0, lowX = 0, highX = 0;
  for (let t = 0; t < taps; t++) {
    const tap = tapList + <usize>t * TAP_BYTES;
    const y = load<i32>(tap, 4), x = load<i32>(tap, 8);
    store<i32>(tap, (y * width + x) * <i32>sourcePixel, 12);
    lowY = min(lowY, y);
    highY = max(highY, y);
    lowX = min(lowX, x);
    highX = max(highX, x);
  }
  let copy = table + ((<usize>(PIXEL_BLOCK + TILE_ROWS)) << 2);
  let n = first / (rows * across);
  let i = (first / across) % rows;
  let j = first % across;
  for (let p = 0; p < count;) {
    const take = tileRows(count - p);
    const there = min(take, count - p);
    const addresses = table + ((<usize>(few ? p : p * taps)) << 2);
    for (let r = 0; r < there; r++) {
      const image = source + <usize>(n * height * width) * sourcePixel;
      store<u32>(outs + ((<usize>(p + r)) << 2), <u32>(result + <usize>n * imageBytes + <usize>i * rowBytes + <usize>j * pixelBytes));
      let slot = addresses + ((<usize>r) << 2);
      let tap = tapList;
      const y = i * stepY, x = j * stepX;
      const corner = image + <usize>(y * width + x) * sourcePixel;
      if (few) {
        store<u32>(slot, <u32>copy);
        if (inner == 1 && y + lowY >= 0 && y + highY < height && x + lowX >= 0 && x + highX < width) {
          for (let t = 0; t < taps; t++) {
            store<f32>(copy, load<f32>(corner + <usize>load<i32>(tap, 12)));
            copy += 4;
            tap += TAP_BYTES;
          }
        } else {
          for (let t = 0; t < taps; t++) {
            const inside = <u32>(y + load<i32>(tap, 4)) < <u32>height && <u32>(x + load<i32>(tap, 8)) < <u32>width;
            const from = inside ? corner + <usize>load<i32>(tap, 12) : zeros;
            for (let q = 0; q < inner; q++) {
              store<f32>(copy, load<f32>(from + ((<usize>q) << 2)));
              copy += 4;
            }
            tap += TAP_BYTES;
          }
        }
      } else {
        for (let t = 0; t < taps; t++) {
          const inside = <u32>(y + load<i32>(tap, 4)) < <u32>height && <u32>(x + load<i32>(tap, 8)) < <u32>width;
          store<u32>(slot, <u32>(inside ? corner + <usize>load<i32>(tap, 12) : zeros));
          slot += (<usize>take) << 2;
          tap += TAP_BYTES;
        }
      }
      if (++j == across) {
        j = 0;
        if (++i == rows) {
          i = 0;
          n++;
        }
      }
    }
    // Unused rows of the last tile repeat the first row of the tile.
    const entries = few ? 1 : taps;
    for (let t = 0; t < entries; t++) {
      const slot = addresses + ((<usize>(t * take)) << 2);
      for (let r = there; r < take; r++) store<u32>(slot + ((<usize>r) << 2), load<u32>(slot));
    }
    p += there;
  }
}

/**
 * Computes results at a grid of pixels: result(n, i, j)[c] = Σ over taps t and q < inner of source(n, i · stepY +
 * offsetY(t), j · stepX + offsetX(t))[q] · weight(t)[q][c]. Pixels outside of the source count as zero. A convolution
 * and each phase of its transpose have this form.
 *
 * `scratch` holds, in this order: edge addresses, tile, zeros, result addresses, table, panels (sizes:
 * `src/contraction-scratch.ts`). `tapList` holds, per tap, the address of its weights, its two offsets, and space for
 * the sum of the offsets in bytes. `columnStep` and `innerStep` are the bytes between weights of consecutive columns
 * and of consecutive channels. result(n, i, j) is at result + n · imageBytes + i · rowBytes + j · pixelBytes.
 */
function gatherProduct(
  source: usize, images: i32, height: i32, width: i32, sourcePixel: usize, inner: i32, stepY: i32, stepX: i32,
  tapList: usize, taps: i32, columnStep: usize, innerStep: usize, columns: i32,
  result: usize, imageBytes: usize, rowBytes: usize, pixelBytes: usize, rows: i32, across: i32, scratch: usize,
): void {
  const block = tapsPerBlock(taps, inner);
  const few = inner < FEW_CHANNELS;
  const edge = scratch;
  const tile = scratch + 32;
  const zeros = tile + TILE_BYTES;
  const outs = zeros + <usize>align16(4 * inner);
  const table = outs + 4 * (PIXEL_BLOCK + 8);
  const panels = table + <usize>align16(4 * tableWords(block, inner));
  for (let r: usize = 0; r < 6; r++) store<u32>(edge + (r << 2), <u32>(tile + (r << 5)));
  memory.fill(zeros, 0, (<usize>inner) << 2);
  const pixels = images * rows * across;
  let tap0 = 0;
  do { // runs once even without taps, to write zeros
    const some = min(block, taps - tap0);
    const depth = some * inner;
    const panelBytes = (<usize>depth) << 5;
    const list = tapList + <usize>tap0 * TAP_BYTES;
    const adding = tap0 > 0;
    for (let t = 0; t < some; t++) {
      packPanels(<usize>load<u32>(list + <usize>t * TAP_BYTES), columnStep, innerStep, columns, inner, panels + ((<usize>(t * inner)) << 5), panelBytes);
    }
    for (let first = 0; first < pixels; first += PIXEL_BLOCK) {
      const count = min(PIXEL_BLOCK, pixels - first);
      addressPixels(
        source, height, width, sourcePixel, inner, stepY, stepX, list, some,
        result, imageBytes, rowBytes, pixelBytes, rows, across, first, count, table, outs, zeros,
      );
      for (let c = 0; c < columns; c += TILE_COLUMNS) {
        const panel = panels + <usize>(c / TILE_COLUMNS) * panelBytes;
        const wide = min(TILE_COLUMNS, columns - c);
        const offset = (<usize>c) << 2;
        for (let p = 0; p < count;) {
          const take = tileRows(count - p);
          const there = min(take, count - p);
          const whole = wide == TILE_COLUMNS && there == take;
          const out = outs + ((<usize>p) << 2);
          const addresses = table + ((<usize>(few ? p : p * some)) << 2);
          const segments = few ? 1 : some;
          const length = few ? depth : inner;
          if (take == TILE_ROWS) tile6(addresses, segments, length, 4, panel, whole ? out : edge, whole ? offset : 0, adding && whole);
          else tile4(addresses, segments, length, 4, panel, whole ? out : edge, whole ? offset : 0, adding && whole);
          if (!whole) {
            for (let r: usize = 0; r < <usize>there; r++) {
              copyTile(tile + (r << 5), <usize>load<u32>(out + (r << 2)) + offset, 0, 1, wide, false, adding);
            }
          }
          p += there;
        }
      }
    }
    tap0 += block;
  } while (tap0 < taps);
}

// @ts-ignore: decorator
@inline
function isPlainProduct(kernelHeight: i32, kernelWidth: i32, strideY: i32, strideX: i32, height: i32, width: i32, outHeight: i32, outWidth: i32, groups: i32): bool {
  return kernelHeight * kernelWidth * strideY * strideX * groups == 1 && height == outHeight && width == outWidth;
}

/** Whether every group has one input and one output channel. */
// @ts-ignore: decorator
@inline
function isDepthwise(channels: i32, outChannels: i32, groups: i32): bool {
  return channels == groups && outChannels == groups && groups > 1;
}

/** Computes y[n, i, j, o] = Σ x[n, i · stride − top + r · dilation, …, q] · w[r, c, q, o]. Sizes are in elements. */
export function conv2d(
  x: usize, w: usize, y: usize, batch: i32, height: i32, width: i32, channels: i32, kernelHeight: i32, kernelWidth: i32,
  outChannels: i32, outHeight: i32, outWidth: i32, strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32, groups: i32, scratch: usize,
): void {
  if (isPlainProduct(kernelHeight, kernelWidth, strideY, strideX, height, width, outHeight, outWidth, groups)) {
    gemm(x, w, y, batch * height * width, outChannels, channels, false, false, false, scratch);
    return;
  }
  const taps = kernelHeight * kernelWidth;
  const perGroup = channels / groups;
  const outPerGroup = outChannels / groups;
  const outPixel = (<usize>outChannels) << 2;
  const byPixel = isDepthwise(channels, outChannels, groups);
  const passes = byPixel ? 1 : groups;
  for (let g = 0; g < passes; g++) {
    let tap = scratch;
    for (let r = 0; r < kernelHeight; r++) {
      for (let c = 0; c < kernelWidth; c++) {
        store<u32>(tap, <u32>(w + ((<usize>((r * kernelWidth + c) * perGroup * outChannels + g * outPerGroup)) << 2)));
        store<i32>(tap, r * dilationY - top, 4);
        store<i32>(tap, c * dilationX - left, 8);
        tap += TAP_BYTES;
      }
    }
    if (byPixel) {
      depthwise(
        x, batch, height, width, (<usize>channels) << 2, strideY, strideX, scratch, taps,
        y, <usize>(outHeight * outWidth) * outPixel, <usize>outWidth * outPixel, outPixel, outHeight, outWidth, scratch + <usize>align16(TAP_BYTES * taps),
      );
      return;
    }
    gatherProduct(
      x + ((<usize>(g * perGroup)) << 2), batch, height, width, (<usize>channels) << 2, perGroup, strideY, strideX,
      scratch, taps, 4, outPixel, outPerGroup,
      y + ((<usize>(g * outPerGroup)) << 2), <usize>(outHeight * outWidth) * outPixel, <usize>outWidth * outPixel, outPixel, outHeight, outWidth,
      scratch + <usize>align16(TAP_BYTES * taps),
    );
  }
}

/**
 * Computes x[n, h, v, q] = Σ g[n, i, j, o] · w[r, c, q, o] over i · stride − top + r · dilation = h, and likewise for
 * columns.
 *
 * All pixels h ≡ phase (mod stride) have the same set of taps. Therefore each phase is a convolution of `g` with step
 * 1, without multiplications by padding. With stride 1 there is one phase, the convolution with the flipped kernel.
 */
export function conv2dBackwardInput(
  g: usize, w: usize, x: usize, batch: i32, height: i32, width: i32, channels: i32, kernelHeight: i32, kernelWidth: i32,
  outChannels: i32, outHeight: i32, outWidth: i32, strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32, groups: i32, scratch: usize,
): void {
  if (isPlainProduct(kernelHeight, kernelWidth, strideY, strideX, height, width, outHeight, outWidth, groups)) {
    gemm(g, w, x, batch * height * width, channels, outChannels, false, true, false, scratch);
    return;
  }
  const perGroup = channels / groups;
  const outPerGroup = outChannels / groups;
  const pixel = (<usize>channels) << 2;
  const work = scratch + <usize>align16(TAP_BYTES * kernelHeight * kernelWidth);
  const byPixel = isDepthwise(channels, outChannels, groups);
  const passes = byPixel ? 1 : groups;
  for (let group = 0; group < passes; group++) {
    for (let phaseY = 0; phaseY < min(strideY, height); phaseY++) {
      for (let phaseX = 0; phaseX < min(strideX, width); phaseX++) {
        let taps = 0;
        for (let r = 0; r < kernelHeight; r++) {
          const offY = phaseY + top - r * dilationY;
          if (offY % strideY != 0) continue;
          for (let c = 0; c < kernelWidth; c++) {
            const offX = phaseX + left - c * dilationX;
            if (offX % strideX != 0) continue;
            const tap = scratch + <usize>taps * TAP_BYTES;
            store<u32>(tap, <u32>(w + ((<usize>((r * kernelWidth + c) * perGroup * outChannels + group * outPerGroup)) << 2)));
            store<i32>(tap, offY / strideY, 4);
            store<i32>(tap, offX / strideX, 8);
            taps++;
          }
        }
        const rows = (height - phaseY + strideY - 1) / strideY, across = (width - phaseX + strideX - 1) / strideX;
        const corner = x + <usize>(phaseY * width + phaseX) * pixel;
        if (byPixel) {
          depthwise(
            g, batch, outHeight, outWidth, pixel, 1, 1, scratch, taps,
            corner, <usize>(height * width) * pixel, <usize>(strideY * width) * pixel, <usize>strideX * pixel, rows, across, work,
          );
          continue;
        }
        gatherProduct(
          g + ((<usize>(group * outPerGroup)) << 2), batch, outHeight, outWidth, (<usize>outChannels) << 2, outPerGroup, 1, 1,
          scratch, taps, (<usize>outChannels) << 2, 4, perGroup,
          corner + ((<usize>(group * perGroup)) << 2),
          <usize>(height * width) * pixel, <usize>(strideY * width) * pixel, <usize>strideX * pixel, rows, across, work,
        );
      }
    }
  }
}

/**
 * Returns the number of output rows per block of the weight gradient. Blocks contain several images if images are
 * smaller than a block.
 */
// @ts-ignore: decorator
@inline
function sumRows(outHeight: i32, outWidth: i32): i32 {
  return max(1, evenBlock(outHeight, max(1, SUM_BLOCK / max(1, outWidth))));
}

// @ts-ignore: decorator
@inline
function sumImages(batch: i32, outHeight: i32, outWidth: i32): i32 {
  return max(1, min(batch, SUM_BLOCK / max(1, outHeight * outWidth)));
}

// @ts-ignore: decorator
@inline
function copyFloats(to: usize, from: usize, bytes: usize): void {
  let at: usize = 0;
  if (ASC_FEATURE_SIMD) for (; at + 16 <= bytes; at += 16) v128.store(to + at, v128.load(from + at));
  for (; at < bytes; at += 4) store<f32>(to + at, load<f32>(from + at));
}

// @ts-ignore: decorator
@inline
function clearFloats(to: usize, bytes: usize): void {
  for (let at: usize = 0; at < bytes; at += 4) store<f32>(to + at, 0);
}

/**
 * Copies a window of an image to `to`: `rows` rows from `firstRow`, `across` columns from `firstColumn`, and the first
 * `channels` channels of each pixel. Pixels outside of the image are zero.
 */
export function copyPadded(image: usize, height: i32, width: i32, pixelBytes: usize, channels: i32, firstRow: i32, firstColumn: i32, rows: i32, across: i32, to: usize): void {
  const bytes = (<usize>channels) << 2;
  const left = min(across, max(0, -firstColumn)); // columns before the image, followed by columns inside of the image
  const inside = max(0, min(across - left, width - max(0, firstColumn)));
  for (let i = 0; i < rows; i++) {
    const y = firstRow + i;
    const there = <u32>y < <u32>height ? inside : 0;
    const before = there > 0 ? left : across;
    clearFloats(to, <usize>before * bytes);
    to += <usize>before * bytes;
    if (there == 0) continue;
    let from = image + <usize>(y * width + max(0, firstColumn)) * pixelBytes;
    if (bytes == pixelBytes) {
      copyFloats(to, from, <usize>there * bytes);
      to += <usize>there * bytes;
    } else {
      for (let j = 0; j < there; j++) {
        copyFloats(to, from, bytes);
        from += pixelBytes;
        to += bytes;
      }
    }
    const after = <usize>(across - left - there) * bytes;
    clearFloats(to, after);
    to += after;
  }
}

/**
 * Computes w[r, c, q, o] = Σ over n, i, j of x[n, i · stride − top + r · dilation, …, q] · g[n, i, j, o].
 *
 * For each block of output pixels, the corresponding window of the image is copied with its padding, and `g` is packed
 * into panels. A tile holds 6 rows of the weight × 8 output channels while the pixels of the block are summed, one
 * segment per output row. Without dilation, the taps of one kernel row are adjacent in the image and in the weight, so
 * their channels are treated as consecutive rows. `scratch` holds, in this order: edge addresses, results, tile, table,
 * image block, panels.
 *
 * Computes part `part` of `parts`: a range of the output channel panels, counted over all groups.
 */
export function conv2dBackwardWeight(
  x: usize, g: usize, w: usize, batch: i32, height: i32, width: i32, channels: i32, kernelHeight: i32, kernelWidth: i32,
  outChannels: i32, outHeight: i32, outWidth: i32, strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32, groups: i32, scratch: usize, part: i32, parts: i32,
): void {
  if (isPlainProduct(kernelHeight, kernelWidth, strideY, strideX, height, width, outHeight, outWidth, groups)) {
    gemmPart(x, g, w, channels, outChannels, batch * height * width, true, false, false, scratch, part, parts);
    return;
  }
  if (isDepthwise(channels, outChannels, groups)) {
    depthwiseBackwardWeight(
      x, g, w, batch, height, width, channels, kernelHeight, kernelWidth,
      outHeight, outWidth, strideY, strideX, top, left, dilationY, dilationX,
    );
    return;
  }
  const perGroup = channels / groups;
  const outPerGroup = outChannels / groups;
  const images = sumImages(batch, outHeight, outWidth);
  const rows = sumRows(outHeight, outWidth);
  const paddedWidth = (outWidth - 1) * strideX + (kernelWidth - 1) * dilationX + 1;
  const pixel = (<usize>perGroup) << 2;
  const outPixel = (<usize>outChannels) << 2;
  const edge = scratch;
  const outs = scratch + 32;
  const tile = scratch + 64;
  const table = tile + TILE_BYTES;
  const block = table + <usize>align16(4 * TILE_ROWS * images * rows);
  const paddedMost = (rows - 1) * strideY + (kernelHeight - 1) * dilationY + 1;
  const panels = block + <usize>align16(4 * images * paddedMost * paddedWidth * perGroup);
  for (let r: usize = 0; r < 6; r++) store<u32>(edge + (r << 2), <u32>(tile + (r << 5)));
  const joined = dilationX == 1 ? kernelWidth : 1; // number of taps whose rows are consecutive
  const tall = joined * perGroup;
  if (batch == 0 && part == 0) memory.fill(w, 0, <usize>(kernelHeight * kernelWidth * perGroup) * outPixel);
  const panelsEach = max(1, (outPerGroup + TILE_COLUMNS - 1) / TILE_COLUMNS);
  const firstPanel = partBegin(groups * panelsEach, part, parts);
  const lastPanel = partBegin(groups * panelsEach, part + 1, parts);
  for (let group = firstPanel / panelsEach; group * panelsEach < lastPanel; group++) {
    const before = max(0, firstPanel - group * panelsEach) * TILE_COLUMNS;
    const columns = min(outPerGroup, (lastPanel - group * panelsEach) * TILE_COLUMNS) - before;
    const firstOut = (<usize>(group * outPerGroup + before)) << 2;
    for (let n0 = 0; n0 < batch; n0 += images) {
      const someImages = min(images, batch - n0);
      for (let i0 = 0; i0 < outHeight; i0 += rows) {
        const adding = n0 + i0 > 0;
        const someRows = min(rows, outHeight - i0);
        const pixels = someImages * someRows * outWidth;
        const paddedRows = (someRows - 1) * strideY + (kernelHeight - 1) * dilationY + 1;
        const panelBytes = (<usize>pixels) << 5;
        for (let n = 0; n < someImages; n++) {
          copyPadded(
            x + ((<usize>((n0 + n) * height * width * channels + group * perGroup)) << 2), height, width, (<usize>channels) << 2, perGroup,
            i0 * strideY - top, -left, paddedRows, paddedWidth, block + <usize>(n * paddedRows * paddedWidth) * pixel,
          );
          packPanels(
            g + <usize>(((n0 + n) * outHeight + i0) * outWidth) * outPixel + firstOut, 4, outPixel, columns, someRows * outWidth,
            panels + ((<usize>(n * someRows * outWidth)) << 5), panelBytes,
          );
        }
        const segments = someImages * someRows;
        for (let t = 0; t < kernelHeight * kernelWidth; t += joined) {
          const under = block + <usize>(t / kernelWidth * dilationY * paddedWidth + t % kernelWidth * dilationX) * pixel;
          for (let q = 0; q < tall;) {
            const take = tileRows(tall - q);
            const there = min(take, tall - q);
            let slot = table;
            for (let s = 0; s < segments; s++) {
              const start = under + <usize>((s / someRows * paddedRows + (s % someRows) * strideY) * paddedWidth) * pixel + ((<usize>q) << 2);
              for (let r = 0; r < take; r++) {
                store<u32>(slot, <u32>(start + ((<usize>min(r, there - 1)) << 2)));
                slot += 4;
              }
            }
            const result = w + <usize>(t * perGroup + q) * outPixel + firstOut;
            for (let r = 0; r < take; r++) store<u32>(outs + ((<usize>r) << 2), <u32>(result + <usize>r * outPixel));
            for (let c = 0; c < columns; c += TILE_COLUMNS) {
              const panel = panels + <usize>(c / TILE_COLUMNS) * panelBytes;
              const wide = min(TILE_COLUMNS, columns - c);
              const whole = wide == TILE_COLUMNS && there == take;
              const offset = (<usize>c) << 2;
              const step = <usize>strideX * pixel;
              if (take == TILE_ROWS) tile6(table, segments, outWidth, step, panel, whole ? outs : edge, whole ? offset : 0, adding && whole);
              else tile4(table, segments, outWidth, step, panel, whole ? outs : edge, whole ? offset : 0, adding && whole);
              if (!whole) copyTile(tile, result + offset, outPixel, there, wide, false, adding);
            }
            q += there;
          }
        }
      }
    }
  }
}
