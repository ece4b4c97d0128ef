// Selects the k largest elements of a row by radix selection. Histograms of the keys, 11 bits at a time, find the k-th
// key. Then one pass in order of position selects all keys above the k-th key, and the first keys equal to it until k
// keys are selected. A long row is first filtered by a bound that is estimated from a sample, so that a row of any
// length is read only twice. A bad estimate affects only the run time.
import { keyOf, Order } from "./order";
import { AIM_TIMES, BINS, LEAST_AIM, LIST, LONG, ROOM_TIMES, SMALL_PART } from "./top-k-blocks";

// @ts-ignore: decorator
@inline
function keyAt(values: usize, i: i32, kind: i32): u32 {
  return keyOf(kind, values + ((<usize>i) << 2), 0);
}

// @ts-ignore: decorator
@inline
function wordAt(base: usize, i: i32): usize {
  return base + ((<usize>i) << 2);
}

/** Returns the target for the number of entries of a row that pass the filter. */
// @ts-ignore: decorator
@inline
function aimOf(k: i32): i32 {
  return max<i32>(AIM_TIMES * k, LEAST_AIM);
}

/** Returns the maximum number of candidates, the entries of a row that pass the filter. */
// @ts-ignore: decorator
@inline
function capacityOf(k: i32): i32 {
  return ROOM_TIMES * aimOf(k);
}

// @ts-ignore: decorator
@inline
function thins(n: i32, k: i32): bool {
  return n >= LONG && k <= n / SMALL_PART;
}

/**
 * Selects the k largest elements in each of `rows` rows with `n` elements, and writes k values and k positions per row.
 * `scratch` holds the list, or a histogram followed by the candidates, whose memory the sort reuses; `src/ops/top-k.ts`
 * computes its size. `kind` is the `Order` that converts words to keys.
 */
export function topK(x: usize, values: usize, indices: usize, rows: i32, n: i32, k: i32, sorted: i32, kind: i32, scratch: usize): void {
  if (k == 0) return;
  for (let row = 0; row < rows; row++) {
    if (k <= LIST) byList(x, values, indices, n, k, sorted, kind, scratch);
    else {
      byRadix(x, values, indices, n, k, kind, scratch);
      if (sorted) sortSelected(values, indices, k, kind, scratch);
    }
    x += (<usize>n) << 2;
    values += (<usize>k) << 2;
    indices += (<usize>k) << 2;
  }
}

/**
 * Selects the k largest elements of a row by insertion into a sorted list of the largest elements so far, largest
 * first.
 */
function byList(x: usize, values: usize, indices: usize, n: i32, k: i32, sorted: i32, kind: i32, scratch: usize): void {
  const keys = scratch;
  const positions = scratch + LIST * 4;
  let held = 0;
  for (let i = 0; i < n; i++) {
    const key = keyAt(x, i, kind);
    if (held == k && key <= load<u32>(wordAt(keys, k - 1))) continue;
    let at = held < k ? held++ : k - 1;
    for (; at > 0 && load<u32>(wordAt(keys, at - 1)) < key; at--) {
      store<u32>(wordAt(keys, at), load<u32>(wordAt(keys, at - 1)));
      store<i32>(wordAt(positions, at), load<i32>(wordAt(positions, at - 1)));
    }
    store<u32>(wordAt(keys, at), key);
    store<i32>(wordAt(positions, at), i);
  }
  if (!sorted) {
    for (let i = 1; i < k; i++) {
      const position = load<i32>(wordAt(positions, i));
      let at = i;
      for (; at > 0 && load<i32>(wordAt(positions, at - 1)) > position; at--) store<i32>(wordAt(positions, at), load<i32>(wordAt(positions, at - 1)));
      store<i32>(wordAt(positions, at), position);
    }
  }
  for (let i = 0; i < k; i++) {
    const position = load<i32>(wordAt(positions, i));
    store<i32>(wordAt(indices, i), position);
    store<u32>(wordAt(values, i), load<u32>(wordAt(x, position)));
  }
}

function byRadix(x: usize, values: usize, indices: usize, n: i32, k: i32, kind: i32, scratch: usize): void {
  let source = x;
  let positions: usize = 0; // 0 means that position i is i
  let count = n;
  if (thins(n, k)) {
    const capacity = capacityOf(k);
    const candidates = scratch + BINS * 4;
    const candidatePositions = wordAt(candidates, capacity);
    const bound = guessBound(x, n, k, kind, scratch);
    const passed = bound == 0 ? -1 : thin(x, n, bound, kind, candidates, candidatePositions, capacity);
    if (passed >= k) {
      source = candidates;
      positions = candidatePositions;
      count = passed;
    }
  }

  // Find the k-th key from its highest bits to its lowest. `wanted` is the number of winners among the keys that share
  // the bits found so far.
  let prefix: u32 = 0;
  let mask: u32 = 0;
  let wanted = k;
  for (let shift = 21; ; ) {
    const width: u32 = shift == 0 ? 0x3ff : 0x7ff;
    memory.fill(scratch, 0, BINS * 4);
    for (let i = 0; i < count; i++) {
      const key = keyAt(source, i, kind);
      if ((key & mask) != prefix) continue;
      const bin = wordAt(scratch, <i32>((key >> shift) & width));
      store<i32>(bin, load<i32>(bin) + 1);
    }
    let bin = <i32>width;
    for (let size = load<i32>(wordAt(scratch, bin)); size < wanted; size = load<i32>(wordAt(scratch, bin))) {
      wanted -= size;
      bin--;
    }
    prefix |= (<u32>bin) << shift;
    mask |= width << shift;
    if (shift == 0) break;
    shift = shift == 21 ? 10 : 0;
  }

  let taken = 0;
  for (let i = 0; taken < k; i++) {
    const key = keyAt(source, i, kind);
    if (key < prefix || (key == prefix && wanted == 0)) continue;
    if (key == prefix) wanted--;
    store<u32>(wordAt(values, taken), load<u32>(wordAt(source, i)));
    store<i32>(wordAt(indices, taken), positions == 0 ? i : load<i32>(wordAt(positions, i)));
    taken++;
  }
}

/**
 * Estimates from evenly spaced samples a bound that the keys of about `aimOf(k)` entries of the row reach. Returns 0 if
 * filtering by a bound would not save time. About 128 samples reach the bound, so the number of entries that reach it
 * is within a third of the target (4 standard deviations).
 */
function guessBound(x: usize, n: i32, k: i32, kind: i32, scratch: usize): u32 {
  const aim = <i64>aimOf(k);
  const step = <i32>max<i64>(1, min<i64>(n >> 13, aim >> 7));
  const samples = (n + step - 1) / step;
  let target = <i32>((aim * <i64>samples) / <i64>n);
  let bound: u32 = 0;
  let mask: u32 = 0;
  for (let shift = 21; shift >= 10; shift -= 11) {
    memory.fill(scratch, 0, BINS * 4);
    for (let i = 0; i < n; i += step) {
      const key = keyAt(x, i, kind);
      if ((key & mask) != bound) continue;
      const bin = wordAt(scratch, <i32>(key >> shift) & (BINS - 1));
      store<i32>(bin, load<i32>(bin) + 1);
    }
    let bin = BINS - 1;
    for (; bin > 0 && load<i32>(wordAt(scratch, bin)) < target; bin--) target -= load<i32>(wordAt(scratch, bin));
    bound |= (<u32>bin) << shift;
    mask |= <u32>(BINS - 1) << shift;
  }
  return bound;
}

/**
 * Copies the values whose keys reach `bound`, and the positions of these values. Returns the number of copied values,
 * or -1 if there are more than `capacity`.
 */
function thin(x: usize, n: i32, bound: u32, kind: i32, candidates: usize, positions: usize, capacity: i32): i32 {
  let count = 0;
  let i = 0;
  if (ASC_FEATURE_SIMD && (kind == Order.Float || kind == Order.Magnitude)) {
    // `edge` is the f32 whose key is the bound. All values that are not smaller than `edge` are selected, including
    // NaN.
    const edge = f32x4.splat(reinterpret<f32>(kind == Order.Magnitude ? bound : bound >> 31 ? bound & 0x7fffffff : ~bound));
    const bits = i32x4.splat(kind == Order.Magnitude ? 0x7fffffff : -1);
    const last = capacity - 16;
    for (; i + 16 <= n; i += 16) {
      const at = wordAt(x, i);
      const a = f32x4.lt(v128.and(v128.load(at), bits), edge);
      const b = f32x4.lt(v128.and(v128.load(at, 16), bits), edge);
      const c = f32x4.lt(v128.and(v128.load(at, 32), bits), edge);
      const d = f32x4.lt(v128.and(v128.load(at, 48), bits), edge);
      if (i32x4.all_true(v128.and(v128.and(a, b), v128.and(c, d)))) continue;
      if (count > last) return -1;
      let open = ~(i32x4.bitmask(a) | (i32x4.bitmask(b) << 4) | (i32x4.bitmask(c) << 8) | (i32x4.bitmask(d) << 12)) & 0xffff;
      while (open != 0) {
        const j = i + ctz<i32>(open);
        store<u32>(wordAt(candidates, count), load<u32>(wordAt(x, j)));
        store<i32>(wordAt(positions, count), j);
        count++;
        open &= open - 1;
      }
    }
  }
  for (; i < n; i++) {
    if (keyAt(x, i, kind) < bound) continue;
    if (count == capacity) return -1;
    store<u32>(wordAt(candidates, count), load<u32>(wordAt(x, i)));
    store<i32>(wordAt(positions, count), i);
    count++;
  }
  return count;
}

/**
 * Sorts the selected values in descending order by a stable radix sort, least significant digit first, so equal values
 * stay in order of position.
 */
function sortSelected(values: usize, indices: usize, k: i32, kind: i32, scratch: usize): void {
  const otherValues = scratch + BINS * 4;
  const otherIndices = wordAt(otherValues, k);
  let fromValues = values;
  let fromIndices = indices;
  let toValues = otherValues;
  let toIndices = otherIndices;
  for (let shift = 0; shift < 32; shift += 8) {
    memory.fill(scratch, 0, 1024);
    for (let i = 0; i < k; i++) {
      const bin = wordAt(scratch, <i32>((~keyAt(fromValues, i, kind) >> shift) & 0xff));
      store<i32>(bin, load<i32>(bin) + 1);
    }
    let begin = 0;
    for (let bin = 0; bin < 256; bin++) {
      const size = load<i32>(wordAt(scratch, bin));
      store<i32>(wordAt(scratch, bin), begin);
      begin += size;
    }
    for (let i = 0; i < k; i++) {
      const bin = wordAt(scratch, <i32>((~keyAt(fromValues, i, kind) >> shift) & 0xff));
      const at = load<i32>(bin);
      store<i32>(bin, at + 1);
      store<u32>(wordAt(toValues, at), load<u32>(wordAt(fromValues, i)));
      store<i32>(wordAt(toIndices, at), load<i32>(wordAt(fromIndices, i)));
    }
    const swapValues = fromValues;
    const swapIndices = fromIndices;
    fromValues = toValues;
    fromIndices = toIndices;
    toValues = swapValues;
    toIndices = swapIndices;
  }
  // The number of rounds is four, so the last round writes to the buffer that the first round read.
}
