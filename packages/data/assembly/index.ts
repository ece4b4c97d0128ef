// Weighted sums of bytes for ../src/resample.ts, which explains the algorithm. All positions are byte addresses. Up to
// 8 bytes past the end of the pixels may be read, and up to 8 bytes past the end of the results may be written.

/** Number of fractional bits of a fixed-point filter weight. */
const precisionBits: i32 = 22;
const half: i32 = 1 << (precisionBits - 1);

/** Loads a pixel of three bytes into the i32 lanes of a vector. */
// @ts-ignore: decorator
@inline
function pixelAt(place: usize): v128 {
  return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load_zero<u32>(place)));
}

/** Converts eight fixed-point sums to eight bytes, clamped to 0–255, in the lowest 64-bit lane. */
// @ts-ignore: decorator
@inline
function bytesOf(low: v128, high: v128): v128 {
  const words = i16x8.narrow_i32x4_s(i32x4.shr_s(low, precisionBits), i32x4.shr_s(high, precisionBits));
  return i8x16.narrow_i16x8_u(words, words);
}

/**
 * Resamples rows of three-byte pixels. Each of the `target` result pixels per row is a weighted sum of up to `taps`
 * source pixels. For each result pixel, `first` contains the index of the first source pixel, and `count` the number of
 * source pixels.
 */
export function acrossColumns(
  from: usize, rows: usize, columns: usize, to: usize, target: usize, taps: usize, first: usize, count: usize, weights: usize,
): void {
  for (let row: usize = 0; row < rows; row++, from += columns * 3) {
    for (let at: usize = 0; at < target; at++, to += 3) {
      let place = from + 3 * load<u32>(first + 4 * at);
      let weight = weights + 4 * at * taps;
      const end = weight + 4 * load<u32>(count + 4 * at);
      let sum = i32x4.splat(half);
      for (; weight < end; weight += 4, place += 3)
        sum = i32x4.add(sum, i32x4.mul(pixelAt(place), v128.load_splat<u32>(weight)));
      v128.store_lane<u32>(to, bytesOf(sum, sum), 0);
    }
  }
}

/**
 * Resamples lines of `lineBytes` bytes. Each of the `target` result lines is a weighted sum of up to `taps` source
 * lines. For each result line, `first` contains the index of the first source line, and `count` the number of source
 * lines. The line at `from` has index `firstLine`.
 */
export function acrossRows(
  from: usize, firstLine: usize, lineBytes: usize, to: usize, target: usize, taps: usize, first: usize, count: usize, weights: usize,
): void {
  for (let at: usize = 0; at < target; at++, to += lineBytes) {
    const top = from + (load<u32>(first + 4 * at) - firstLine) * lineBytes;
    const begin = weights + 4 * at * taps;
    const end = begin + 4 * load<u32>(count + 4 * at);
    // bytes written past the end of a line are overwritten by the next line
    for (let i: usize = 0; i < lineBytes; i += 8) {
      let low = i32x4.splat(half);
      let high = low;
      for (let weight = begin, place = top + i; weight < end; weight += 4, place += lineBytes) {
        const words = v128.load_ext<u8>(place);
        const factor = v128.load_splat<u32>(weight);
        low = i32x4.add(low, i32x4.mul(i32x4.extend_low_i16x8_u(words), factor));
        high = i32x4.add(high, i32x4.mul(i32x4.extend_high_i16x8_u(words), factor));
      }
      v128.store_lane<u64>(to + i, bytesOf(low, high), 0);
    }
  }
}
