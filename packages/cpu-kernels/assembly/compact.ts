// Compacts the entries of a vector whose magnitude is at least a bound, in one pass.

/** Bits of infinity. The bits of NaN are larger. */
const INFINITY: i32 = 0x7f800000;

// @ts-ignore: decorator
@inline
function keysAt(at: usize, offset: usize): v128 {
  return v128.and(v128.load(at + offset), i32x4.splat(0x7fffffff));
}

/**
 * Writes the values and positions of the first `capacity` selected entries of `x` [n], followed by zeros. An entry is
 * selected if its magnitude is at least the magnitude of the f32 at `bound`. Zeros are never selected, NaN is always
 * selected. `count` receives the number of selected entries, including those beyond the capacity. `greatest` receives
 * the maximum magnitude of all entries. Magnitudes are compared as integers, because bits without the sign have the
 * same order.
 */
export function compact(x: usize, bound: usize, values: usize, indices: usize, count: usize, greatest: usize, n: i32, capacity: i32): void {
  const least = min<i32>(INFINITY, max<i32>(1, load<i32>(bound) & 0x7fffffff));
  let found = 0;
  let most = 0;
  let i = 0;
  if (ASC_FEATURE_SIMD) {
    const below = i32x4.splat(least - 1);
    let maxA = i32x4.splat(0);
    let maxB = i32x4.splat(0);
    for (; i + 16 <= n; i += 16) {
      const at = x + ((<usize>i) << 2);
      const a = keysAt(at, 0);
      const b = keysAt(at, 16);
      const c = keysAt(at, 32);
      const d = keysAt(at, 48);
      maxA = i32x4.max_s(maxA, i32x4.max_s(a, b));
      maxB = i32x4.max_s(maxB, i32x4.max_s(c, d));
      const e = i8x16.narrow_i16x8_s(
        i16x8.narrow_i32x4_s(i32x4.gt_s(a, below), i32x4.gt_s(b, below)),
        i16x8.narrow_i32x4_s(i32x4.gt_s(c, below), i32x4.gt_s(d, below)),
      );
      let selected = i8x16.bitmask(e);
      if (selected == 0) continue;
      if (found + 16 > capacity) {
        for (; selected != 0 && found < capacity; selected &= selected - 1) {
          const j = ctz<i32>(selected);
          store<u32>(values + ((<usize>found) << 2), load<u32>(at + ((<usize>j) << 2)));
          store<i32>(indices + ((<usize>found) << 2), i + j);
          found++;
        }
        found += popcnt<i32>(selected);
        continue;
      }
      for (; selected != 0; selected &= selected - 1) {
        const j = ctz<i32>(selected);
        store<u32>(values + ((<usize>found) << 2), load<u32>(at + ((<usize>j) << 2)));
        store<i32>(indices + ((<usize>found) << 2), i + j);
        found++;
      }
    }
    maxA = i32x4.max_s(maxA, maxB);
    most = max(max(i32x4.extract_lane(maxA, 0), i32x4.extract_lane(maxA, 1)), max(i32x4.extract_lane(maxA, 2), i32x4.extract_lane(maxA, 3)));
  }
  for (; i < n; i++) {
    const own = load<i32>(x + ((<usize>i) << 2));
    const key = own & 0x7fffffff;
    most = max(most, key);
    if (key < least) continue;
    if (found < capacity) {
      store<i32>(values + ((<usize>found) << 2), own);
      store<i32>(indices + ((<usize>found) << 2), i);
    }
    found++;
  }
  store<i32>(count, found);
  store<i32>(greatest, most);
  if (found >= capacity) return;
  const left = (<usize>(capacity - found)) << 2;
  memory.fill(values + ((<usize>found) << 2), 0, left);
  memory.fill(indices + ((<usize>found) << 2), 0, left);
}
