// Positions of true elements.

/**
 * Writes the positions of the first `capacity` true elements of `n` bools, followed by zeros. `count` receives the
 * number of positions written.
 */
export function nonzero(mask: usize, indices: usize, count: usize, n: i32, capacity: i32): void {
  const end = indices + ((<usize>capacity) << 2);
  let to = indices;
  let i = 0;
  if (ASC_FEATURE_SIMD) {
    const zero = i8x16.splat(0);
    for (; i + 64 <= n && to < end; i += 64) {
      const at = mask + <usize>i;
      const a = v128.load(at);
      const b = v128.load(at, 16);
      const c = v128.load(at, 32);
      const d = v128.load(at, 48);
      if (!v128.any_true(v128.or(v128.or(a, b), v128.or(c, d)))) continue;
      let selected: u64 = <u64>(<u32>(i8x16.bitmask(i8x16.ne(a, zero)) | (i8x16.bitmask(i8x16.ne(b, zero)) << 16)));
      selected |= (<u64>(<u32>(i8x16.bitmask(i8x16.ne(c, zero)) | (i8x16.bitmask(i8x16.ne(d, zero)) << 16)))) << 32;
      // If fewer than 64 positions are free, the loop checks the free space before each position.
      if (<usize>(end - to) >= 256) {
        for (; selected != 0; selected &= selected - 1) {
          store<i32>(to, i + <i32>ctz(selected));
          to += 4;
        }
      } else {
        for (; selected != 0 && to < end; selected &= selected - 1) {
          store<i32>(to, i + <i32>ctz(selected));
          to += 4;
        }
      }
    }
  } else {
    for (; i + 8 <= n && to < end; i += 8) {
      // Bytes have value 0 or 1. The multiplication moves the bits next to each other at the top.
      let selected = <u32>((load<u64>(mask + <usize>i) * 0x0102040810204080) >> 56);
      for (; selected != 0 && to < end; selected &= selected - 1) {
        store<i32>(to, i + <i32>ctz(selected));
        to += 4;
      }
    }
  }
  for (; i < n && to < end; i++) {
    if (!load<u8>(mask + <usize>i)) continue;
    store<i32>(to, i);
    to += 4;
  }
  store<i32>(count, <i32>((to - indices) >> 2));
  memory.fill(to, 0, end - to);
}
