// Convolution through the column matrix (im2col), for products that run outside of WebAssembly: writes the column
// matrix of a block of pixels, and adds a column matrix back to the pixels.
import { copyPadded } from "./convolution";

/**
 * Writes columns [begin, end) of rows [first, first + count) in one group's column matrix. The row of output pixel p
 * holds [kernelHeight][kernelWidth][perGroup] image values, with zeros for taps outside of the image. Pixels are
 * numbered over [batch][outHeight][outWidth]. `x` begins at the group's first channel. Result rows have `end − begin`
 * values.
 */
export function patches(
  x: usize, to: usize, height: i32, width: i32, channels: i32, perGroup: i32, kernelHeight: i32, kernelWidth: i32, outHeight: i32, outWidth: i32,
  strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32, first: i32, count: i32, begin: i32, end: i32,
): void {
  const pixel = (<usize>channels) << 2;
  const imageBytes = <usize>(height * width) * pixel;
  const across = kernelWidth * perGroup; // number of matrix columns per kernel row
  const whole = begin == 0 && end == kernelHeight * across && dilationY == 1 && dilationX == 1;
  let i = (first / outWidth) % outHeight;
  let j = first % outWidth;
  let image = x + <usize>(first / (outHeight * outWidth)) * imageBytes;
  for (let p = 0; p < count; p++) {
    const y0 = i * strideY - top;
    const x0 = j * strideX - left;
    if (whole) {
      copyPadded(image, height, width, pixel, perGroup, y0, x0, kernelHeight, kernelWidth, to);
      to += (<usize>end) << 2;
    } else {
      for (let at = begin; at < end; ) {
        const r = at / across;
        const c = (at % across) / perGroup;
        const before = at % perGroup;
        const stop = min(end, (r + 1) * across);
        const taps = before == 0 && dilationX == 1 ? (stop - at) / perGroup : 0; // adjacent taps copied together
        const some = taps > 0 ? perGroup : min(perGroup - before, stop - at); // number of channels to copy per tap
        const from = image + ((<usize>before) << 2);
        copyPadded(from, height, width, pixel, some, y0 + r * dilationY, x0 + c * dilationX, 1, max(1, taps), to);
        at += max(1, taps) * some;
        to += (<usize>(max(1, taps) * some)) << 2;
      }
    }
    if (++j == outWidth) {
      j = 0;
      if (++i == outHeight) {
        i = 0;
        image += imageBytes;
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function addFloats(to: usize, from: usize, bytes: usize): void {
  let at: usize = 0;
  if (ASC_FEATURE_SIMD) for (; at + 16 <= bytes; at += 16) v128.store(to + at, f32x4.add(v128.load(to + at), v128.load(from + at)));
  for (; at < bytes; at += 4) store<f32>(to + at, load<f32>(to + at) + load<f32>(from + at));
}

/**
 * Adds rows of a column matrix to the pixels that `patches` reads: the transposed operation of `patches`. Values
 * outside of rows `firstRow` … `lastRow` − 1 of the images, numbered over [batch][height], are discarded.
 */
export function addPatches(
  from: usize, x: usize, height: i32, width: i32, channels: i32, perGroup: i32, kernelHeight: i32, kernelWidth: i32, outHeight: i32, outWidth: i32,
  strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32, first: i32, count: i32, firstRow: i32, lastRow: i32,
): void {
  const pixel = (<usize>channels) << 2;
  const imageBytes = <usize>(height * width) * pixel;
  const tapBytes = (<usize>perGroup) << 2;
  // Taps that are adjacent in the kernel and in the image are added together.
  const joined = dilationX == 1 && perGroup == channels;
  let i = (first / outWidth) % outHeight;
  let j = first % outWidth;
  let image = x + <usize>(first / (outHeight * outWidth)) * imageBytes;
  // The `rows` rows of this image from `lowest` on receive values.
  let above = first / (outHeight * outWidth) * height;
  let lowest = max(0, firstRow - above);
  let rows = max(0, min(height, lastRow - above) - lowest);
  for (let p = 0; p < count; p++) {
    const x0 = j * strideX - left;
    for (let r = 0; r < kernelHeight; r++) {
      const y = i * strideY - top + r * dilationY;
      if (<u32>(y - lowest) < <u32>rows) {
        const row = image + <usize>(y * width) * pixel;
        if (joined) {
          const before = max(0, -x0);
          const inside = min(kernelWidth, width - x0) - before;
          if (inside > 0) addFloats(row + <usize>(x0 + before) * pixel, from + <usize>before * tapBytes, <usize>inside * tapBytes);
        } else {
          for (let c = 0; c < kernelWidth; c++) {
            const column = x0 + c * dilationX;
            if (<u32>column < <u32>width) addFloats(row + <usize>column * pixel, from + <usize>c * tapBytes, tapBytes);
          }
        }
      }
      from += <usize>kernelWidth * tapBytes;
    }
    if (++j == outWidth) {
      j = 0;
      if (++i == outHeight) {
        i = 0;
        image += imageBytes;
        above += height;
        lowest = max(0, firstRow - above);
        rows = max(0, min(height, lastRow - above) - lowest);
      }
    }
  }
}
