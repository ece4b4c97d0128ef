// Bools packed as single bits, 32 per word.

/**
 * Packs four bytes with value 0 or 1 into four bits. The multiplication moves the bits next to each other at the top.
 */
// @ts-ignore: decorator
@inline
function nibble(bytes: u32): u32 {
  return (bytes * 0x10204080) >> 28;
}

/** Packs rows of `count` bools into rows of ⌈count/32⌉ words. Bits after the last element are 0. */
export function packBits(output: usize, input: usize, rows: i32, count: i32): void {
  for (let row = 0; row < rows; row++) {
    let left = count;
    for (; left >= 32; left -= 32) {
      if (ASC_FEATURE_SIMD) {
        const zero = i8x16.splat(0);
        const low = i8x16.bitmask(i8x16.ne(v128.load(input), zero));
        store<u32>(output, low | (i8x16.bitmask(i8x16.ne(v128.load(input, 16), zero)) << 16));
      } else {
        let word: u32 = 0;
        for (let i = 0; i < 8; i++) word |= nibble(load<u32>(input + ((<usize>i) << 2))) << (4 * i);
        store<u32>(output, word);
      }
      input += 32;
      output += 4;
    }
    if (left > 0) {
      let word: u32 = 0;
      for (let i = 0; i < left; i++) word |= (<u32>load<u8>(input + i)) << i;
      store<u32>(output, word);
      input += left;
      output += 4;
    }
  }
}

/** Narrows eight 32-bit masks to eight 16-bit masks, each 0 or -1. */
// @ts-ignore: decorator
@inline
function narrowMasks(masks: usize): v128 {
  return i16x8.narrow_i32x4_s(v128.load(masks), v128.load(masks, 16));
}

/**
 * Packs rows of `count` masks (32 bits each, all set or all clear) into rows of ⌈count/32⌉ words, in the same format as
 * `packBits`.
 */
export function packLanes(masks: usize, output: usize, rows: i32, count: i32): void {
  for (let row = 0; row < rows; row++) {
    let left = count;
    if (ASC_FEATURE_SIMD) {
      for (; left >= 32; left -= 32, masks += 128, output += 4) {
        const low = i8x16.bitmask(i8x16.narrow_i16x8_s(narrowMasks(masks), narrowMasks(masks + 32)));
        store<u32>(output, low | (i8x16.bitmask(i8x16.narrow_i16x8_s(narrowMasks(masks + 64), narrowMasks(masks + 96))) << 16));
      }
    }
    for (; left > 0; left -= 32, output += 4) {
      const bits = min<i32>(left, 32);
      let word: u32 = 0;
      for (let i = 0; i < bits; i++, masks += 4) word |= (load<u32>(masks) & 1) << i;
      store<u32>(output, word);
    }
  }
}

/** Unpacks rows of ⌈count/32⌉ words into rows of `count` bools. */
export function unpackBits(output: usize, input: usize, rows: i32, count: i32): void {
  for (let row = 0; row < rows; row++) {
    for (let left = count; left > 0; left -= 32) {
      let word = load<u32>(input);
      input += 4;
      if (left >= 32) {
        if (ASC_FEATURE_SIMD) {
          // Each byte of the word is repeated eight times; each copy is masked to a different bit.
          const bytes = i32x4.splat(word);
          const bits = i64x2.splat(0x8040201008040201);
          const low = v128.and(v128.shuffle<i8>(bytes, bytes, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), bits);
          const high = v128.and(v128.shuffle<i8>(bytes, bytes, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3), bits);
          v128.store(output, v128.and(i8x16.eq(low, bits), i8x16.splat(1)));
          v128.store(output, v128.and(i8x16.eq(high, bits), i8x16.splat(1)), 16);
          output += 32;
        } else {
          // The multiplication shifts copies of the nibble so that each byte receives its bit.
          for (let i = 0; i < 8; i++) {
            store<u32>(output, ((word & 15) * 0x00204081) & 0x01010101);
            word >>= 4;
            output += 4;
          }
        }
      } else {
        for (let i = 0; i < left; i++) store<u8>(output + i, <u8>((word >> i) & 1));
        output += left;
      }
    }
  }
}
