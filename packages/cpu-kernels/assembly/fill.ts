// Kernels that generate values without operands.

/** Writes `bits` to `count` words. */
export function fill32(output: usize, bits: u32, count: i32): void {
  const end = output + ((<usize>count) << 2);
  if (ASC_FEATURE_SIMD) {
    const value = i32x4.splat(bits);
    for (const blocks = output + ((<usize>(count & ~3)) << 2); output < blocks; output += 16) v128.store(output, value);
  }
  for (; output < end; output += 4) store<u32>(output, bits);
}

/** Writes `bits` to `count` half-words. */
export function fill16(output: usize, bits: u32, count: i32): void {
  for (const end = output + ((<usize>count) << 1); output < end; output += 2) store<u16>(output, <u16>bits);
}

/** Writes `bits` to `count` bytes. */
export function fill8(output: usize, bits: u32, count: i32): void {
  memory.fill(output, <u8>bits, count);
}

/**
 * Writes the numbers 0 to `size - 1`, each repeated `inner` times, as f32 if `float`, otherwise as integers. The
 * sequence is written `outer` times.
 */
export function iota(output: usize, outer: i32, size: i32, inner: i32, float: i32): void {
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < size; i++) {
      fill32(output, float ? reinterpret<u32>(<f32>i) : <u32>i, inner);
      output += (<usize>inner) << 2;
    }
  }
}

/**
 * Writes one-hot rows of `depth` elements, `width` bytes each: the bits `one` at the row's index, 0 at all other
 * positions.
 */
export function oneHot(indices: usize, output: usize, rows: i32, depth: i32, one: u32, width: i32): void {
  memory.fill(output, 0, <usize>rows * <usize>depth * <usize>width);
  for (let row = 0; row < rows; row++) {
    const index = load<i32>(indices + ((<usize>row) << 2));
    if (<u32>index >= <u32>depth) continue;
    const target = output + (<usize>row * <usize>depth + <usize>index) * <usize>width;
    if (width == 4) store<u32>(target, one);
    else store<u8>(target, <u8>one);
  }
}
