// Softmax, log-softmax and cross-entropy over rows of `width` f32. After the first pass, a row is read from the
// first-level cache.
import { BLOCK_BYTES, madd, maxLanes, sumLanes } from "./lanes";
import { sumRow } from "./sum";
import { expOf, logOf } from "./transcendental";

/**
 * Returns the maximum of a row. May ignore a NaN, because the exponentials propagate the NaN. `pmax` is one
 * instruction; `max`, which must propagate NaN, is a chain of six, and would cost as much as the exponentials.
 */
// @ts-ignore: decorator
@inline
export function maxOfRow(row: usize, bytes: usize): f32 {
  let largest: f32 = -Infinity;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    let even = f32x4.splat(-Infinity);
    let odd = f32x4.splat(-Infinity);
    for (; i + 32 <= bytes; i += 32) {
      even = f32x4.pmax(even, v128.load(row + i));
      odd = f32x4.pmax(odd, v128.load(row + i, 16));
    }
    for (; i + 16 <= bytes; i += 16) even = f32x4.pmax(even, v128.load(row + i));
    largest = maxLanes(f32x4.pmax(even, odd));
  }
  for (; i < bytes; i += 4) largest = max(largest, load<f32>(row + i));
  return largest;
}

/**
 * Returns the sum of exp(row − shift) over a block in which no entry exceeds `shift`. If `keep`, the terms are written
 * to `output`.
 */
// @ts-ignore: decorator
@inline
export function sumOfBlockExps(output: usize, row: usize, bytes: usize, shift: f32, keep: bool): f32 {
  let total: f32 = 0;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const shifts = f32x4.splat(shift);
    let lanes = f32x4.splat(0);
    for (; i + 16 <= bytes; i += 16) {
      const a = expOf<v128>(f32x4.sub(v128.load(row + i), shifts));
      if (keep) v128.store(output + i, a);
      lanes = f32x4.add(lanes, a);
    }
    total = sumLanes(lanes);
  }
  for (; i < bytes; i += 4) {
    const a = expOf<f32>(load<f32>(row + i) - shift);
    if (keep) store<f32>(output + i, a);
    total += a;
  }
  return total;
}

function sumOfLongExps(row: usize, bytes: usize, shift: f32): f32 {
  let total: f64 = 0;
  for (let i: usize = 0; i < bytes; i += BLOCK_BYTES) total += <f64>sumOfBlockExps(0, row + i, min(BLOCK_BYTES, bytes - i), shift, false);
  return <f32>total;
}

function sumOfKeptLongExps(output: usize, row: usize, bytes: usize, shift: f32): f32 {
  let total: f64 = 0;
  for (let i: usize = 0; i < bytes; i += BLOCK_BYTES) total += <f64>sumOfBlockExps(output + i, row + i, min(BLOCK_BYTES, bytes - i), shift, true);
  return <f32>total;
}

/** Variant of `sumOfBlockExps` for a row of any length. */
// @ts-ignore: decorator
@inline
export function sumOfExps(output: usize, row: usize, bytes: usize, shift: f32, keep: bool): f32 {
  if (bytes <= BLOCK_BYTES) return sumOfBlockExps(output, row, bytes, shift, keep);
  return keep ? sumOfKeptLongExps(output, row, bytes, shift) : sumOfLongExps(row, bytes, shift);
}

/** Computes `output = row · factor`. */
// @ts-ignore: decorator
@inline
export function scaleRow(output: usize, row: usize, bytes: usize, factor: f32): void {
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; i + 16 <= bytes; i += 16) v128.store(output + i, f32x4.mul(v128.load(row + i), f32x4.splat(factor)));
  }
  for (; i < bytes; i += 4) store<f32>(output + i, load<f32>(row + i) * factor);
}

export function softmax(output: usize, input: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const total = sumOfExps(output, input, bytes, maxOfRow(input, bytes), true);
    scaleRow(output, output, bytes, <f32>1 / total);
    input += bytes;
    output += bytes;
  }
}

export function logSoftmax(output: usize, input: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const largest = maxOfRow(input, bytes);
    const logSum = logOf<f32>(sumOfExps(0, input, bytes, largest, false));
    // Subtracts the two shifts one after the other, because their sum would lose `logSum` next to a large maximum.
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        v128.store(output + i, f32x4.sub(f32x4.sub(v128.load(input + i), f32x4.splat(largest)), f32x4.splat(logSum)));
      }
    }
    for (; i < bytes; i += 4) store<f32>(output + i, load<f32>(input + i) - largest - logSum);
    input += bytes;
    output += bytes;
  }
}

/** Returns the sum of a · b over a block. */
// @ts-ignore: decorator
@inline
function dotOfBlocks(a: usize, b: usize, bytes: usize): f32 {
  let total: f32 = 0;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    let even = f32x4.splat(0);
    let odd = f32x4.splat(0);
    for (; i + 32 <= bytes; i += 32) {
      even = madd(v128.load(a + i), v128.load(b + i), even);
      odd = madd(v128.load(a + i, 16), v128.load(b + i, 16), odd);
    }
    for (; i + 16 <= bytes; i += 16) even = madd(v128.load(a + i), v128.load(b + i), even);
    total = sumLanes(f32x4.add(even, odd));
  }
  for (; i < bytes; i += 4) total += load<f32>(a + i) * load<f32>(b + i);
  return total;
}

function dotOfLongRows(a: usize, b: usize, bytes: usize): f32 {
  let total: f64 = 0;
  for (let i: usize = 0; i < bytes; i += BLOCK_BYTES) total += <f64>dotOfBlocks(a + i, b + i, min(BLOCK_BYTES, bytes - i));
  return <f32>total;
}

/** Computes the softmax gradient `y · (g − Σ g·y)` per row. `y` is the softmax. */
export function softmaxBackward(output: usize, y: usize, g: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const dot = bytes <= BLOCK_BYTES ? dotOfBlocks(y, g, bytes) : dotOfLongRows(y, g, bytes);
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) v128.store(output + i, f32x4.mul(v128.load(y + i), f32x4.sub(v128.load(g + i), f32x4.splat(dot))));
    }
    for (; i < bytes; i += 4) store<f32>(output + i, load<f32>(y + i) * (load<f32>(g + i) - dot));
    y += bytes;
    g += bytes;
    output += bytes;
  }
}

/** Computes the log-softmax gradient `g − exp(y) · Σ g` per row. `y` is the log-softmax. */
export function logSoftmaxBackward(output: usize, y: usize, g: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const total = sumRow(g, width);
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) v128.store(output + i, madd(expOf<v128>(v128.load(y + i)), f32x4.splat(-total), v128.load(g + i)));
    }
    for (; i < bytes; i += 4) store<f32>(output + i, load<f32>(g + i) - expOf<f32>(load<f32>(y + i)) * total);
    y += bytes;
    g += bytes;
    output += bytes;
  }
}

/**
 * Computes the loss, the maximum and the sum of exponentials of each row. Maximum and sum are NaN if the softmax is
 * undefined. The loss is NaN if the label is not a class.
 */
export function crossEntropy(losses: usize, maxima: usize, totals: usize, logits: usize, labels: usize, rows: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const at = <usize>row << 2;
    const largest = maxOfRow(logits, bytes);
    const total = sumOfExps(0, logits, bytes, largest, false);
    const label = load<i32>(labels + at);
    store<f32>(maxima + at, total == total ? largest : NaN);
    store<f32>(totals + at, total);
    store<f32>(losses + at, <u32>label < <u32>width ? largest - load<f32>(logits + (<usize>label << 2)) + logOf<f32>(total) : NaN);
    logits += bytes;
  }
}

/** Computes the cross-entropy gradient `(exp(logits − maximum) / total − onehot(label)) · g` per row. */
export function crossEntropyBackward(
  output: usize, logits: usize, labels: usize, maxima: usize, totals: usize, g: usize, rows: i32, width: i32,
): void {
  const bytes = <usize>width << 2;
  for (let row = 0; row < rows; row++) {
    const at = <usize>row << 2;
    const label = load<i32>(labels + at);
    const largest = load<f32>(maxima + at);
    const total = load<f32>(totals + at);
    // If the label is not a class, the complete row is NaN.
    const gradient: f32 = <u32>label < <u32>width ? load<f32>(g + at) : NaN;
    const factor = gradient / total;
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      for (; i + 16 <= bytes; i += 16) {
        v128.store(output + i, f32x4.mul(expOf<v128>(f32x4.sub(v128.load(logits + i), f32x4.splat(largest))), f32x4.splat(factor)));
      }
    }
    for (; i < bytes; i += 4) store<f32>(output + i, expOf<f32>(load<f32>(logits + i) - largest) * factor);
    if (<u32>label < <u32>width) {
      const target = <usize>label << 2;
      store<f32>(output + target, (expOf<f32>(load<f32>(logits + target) - largest) / total - 1) * gradient);
    }
    logits += bytes;
    output += bytes;
  }
}
