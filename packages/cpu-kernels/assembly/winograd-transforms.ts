// Transforms for Winograd's minimal filtering; a vector holds four channels. F(4, 3) computes 4 × 4 results of a 3 × 3
// kernel from 6 × 6 pixels with 36 products instead of 144. F(3, 4) computes the kernel's gradient.
//
// The points are 0, ±√½, ±√2 and ∞. For 603 terms and normally distributed operands, the root mean square error
// relative to f64 is 1.75 times the error of the direct sum. With the usual points 0, ±1, ±2, the error is 3.7 times
// the error of the direct sum (`docs/experiments.md`). Every transform is applied along one dimension, then along the
// other dimension. The values in `from` are `step` bytes apart, the values in `to` are `toStep` bytes apart.
import { madd } from "./lanes";

const ROOT_HALF: f32 = 0.70710678118654752;
const ROOT_TWO: f32 = 1.41421356237309505;

// @ts-ignore: decorator
@inline
function times(a: v128, factor: f32): v128 {
  return f32x4.mul(a, f32x4.splat(factor));
}

// @ts-ignore: decorator
@inline
function plusTimes(a: v128, b: v128, factor: f32): v128 {
  return madd(b, f32x4.splat(factor), a);
}

/** Winograd input transform in one dimension: computes the values at the six points from six pixels. */
// @ts-ignore: decorator
@inline
function pixels(from: usize, step: usize, to: usize, toStep: usize): void {
  const d0 = v128.load(from), d1 = v128.load(from + step), d2 = v128.load(from + 2 * step);
  const d3 = v128.load(from + 3 * step), d4 = v128.load(from + 4 * step), d5 = v128.load(from + 5 * step);
  v128.store(to, plusTimes(f32x4.add(d0, d4), d2, -2.5));
  const evenHalf = plusTimes(d4, d2, -2), oddHalf = plusTimes(times(d3, ROOT_HALF), d1, -ROOT_TWO);
  v128.store(to + toStep, f32x4.add(evenHalf, oddHalf));
  v128.store(to + 2 * toStep, f32x4.sub(evenHalf, oddHalf));
  const evenTwo = plusTimes(d4, d2, -0.5), oddTwo = plusTimes(times(d3, ROOT_TWO), d1, -ROOT_HALF);
  v128.store(to + 3 * toStep, f32x4.add(evenTwo, oddTwo));
  v128.store(to + 4 * toStep, f32x4.sub(evenTwo, oddTwo));
  v128.store(to + 5 * toStep, plusTimes(f32x4.add(d1, d5), d3, -2.5));
}

/**
 * Winograd kernel transform in one dimension: computes the values at the six points from three taps. The value at a
 * point is divided by the product of the distances between this point and all other points.
 */
// @ts-ignore: decorator
@inline
function taps(from: usize, step: usize, to: usize, toStep: usize): void {
  const w0 = v128.load(from), w1 = v128.load(from + step), w2 = v128.load(from + 2 * step);
  v128.store(to, w0);
  const evenHalf = times(plusTimes(w0, w2, 0.5), -2.0 / 3.0), oddHalf = times(w1, -2.0 / 3.0 * ROOT_HALF);
  v128.store(to + toStep, f32x4.add(evenHalf, oddHalf));
  v128.store(to + 2 * toStep, f32x4.sub(evenHalf, oddHalf));
  const evenTwo = times(plusTimes(w0, w2, 2), 1.0 / 6.0), oddTwo = times(w1, 1.0 / 6.0 * ROOT_TWO);
  v128.store(to + 3 * toStep, f32x4.add(evenTwo, oddTwo));
  v128.store(to + 4 * toStep, f32x4.sub(evenTwo, oddTwo));
  v128.store(to + 5 * toStep, w2);
}

/** Winograd output transform in one dimension: computes four results from the products at the six points. */
// @ts-ignore: decorator
@inline
function results(from: usize, step: usize, to: usize, toStep: usize): void {
  const m0 = v128.load(from), m1 = v128.load(from + step), m2 = v128.load(from + 2 * step);
  const m3 = v128.load(from + 3 * step), m4 = v128.load(from + 4 * step), m5 = v128.load(from + 5 * step);
  const evenHalf = f32x4.add(m1, m2), oddHalf = f32x4.sub(m1, m2);
  const evenTwo = f32x4.add(m3, m4), oddTwo = f32x4.sub(m3, m4);
  v128.store(to, f32x4.add(m0, f32x4.add(evenHalf, evenTwo)));
  v128.store(to + toStep, plusTimes(times(oddHalf, ROOT_HALF), oddTwo, ROOT_TWO));
  v128.store(to + 2 * toStep, plusTimes(times(evenHalf, 0.5), evenTwo, 2));
  v128.store(to + 3 * toStep, f32x4.add(plusTimes(times(oddHalf, 0.5 * ROOT_HALF), oddTwo, 2 * ROOT_TWO), m5));
}

/**
 * Winograd transform of cotangents in one dimension: computes the values at the six points from four cotangents. The
 * divisors of the points are applied in `kernelGradient`.
 */
// @ts-ignore: decorator
@inline
function cotangents(from: usize, step: usize, to: usize, toStep: usize): void {
  const g0 = v128.load(from), g1 = v128.load(from + step), g2 = v128.load(from + 2 * step), g3 = v128.load(from + 3 * step);
  v128.store(to, g0);
  const evenHalf = plusTimes(g0, g2, 0.5), oddHalf = times(plusTimes(g1, g3, 0.5), ROOT_HALF);
  v128.store(to + toStep, f32x4.add(evenHalf, oddHalf));
  v128.store(to + 2 * toStep, f32x4.sub(evenHalf, oddHalf));
  const evenTwo = plusTimes(g0, g2, 2), oddTwo = times(plusTimes(g1, g3, 2), ROOT_TWO);
  v128.store(to + 3 * toStep, f32x4.add(evenTwo, oddTwo));
  v128.store(to + 4 * toStep, f32x4.sub(evenTwo, oddTwo));
  v128.store(to + 5 * toStep, g3);
}

/**
 * Winograd output transform of the kernel gradient in one dimension: computes the gradient of three taps from the sums
 * at the six points.
 */
// @ts-ignore: decorator
@inline
function kernelGradient(from: usize, step: usize, to: usize, toStep: usize): void {
  const m0 = v128.load(from), m1 = v128.load(from + step), m2 = v128.load(from + 2 * step);
  const m3 = v128.load(from + 3 * step), m4 = v128.load(from + 4 * step), m5 = v128.load(from + 5 * step);
  const evenHalf = times(f32x4.add(m1, m2), -2.0 / 3.0), oddHalf = times(f32x4.sub(m1, m2), -2.0 / 3.0 * ROOT_HALF);
  const evenTwo = times(f32x4.add(m3, m4), 1.0 / 6.0), oddTwo = times(f32x4.sub(m3, m4), 1.0 / 6.0 * ROOT_TWO);
  v128.store(to, f32x4.add(m0, f32x4.add(evenHalf, evenTwo)));
  v128.store(to + toStep, f32x4.add(oddHalf, oddTwo));
  v128.store(to + 2 * toStep, f32x4.add(plusTimes(times(evenHalf, 0.5), evenTwo, 2), m5));
}

/**
 * Computes the 36 Winograd values, `step` bytes apart, of 6 × 6 pixels, for four channels. Rows are `row` bytes apart,
 * pixels `pixel` bytes. `between` is scratch memory for 36 vectors.
 */
export function transformPixels(from: usize, row: usize, pixel: usize, to: usize, step: usize, between: usize): void {
  for (let j: usize = 0; j < 6; j++) pixels(from + j * pixel, row, between + (j << 4), 96);
  for (let i: usize = 0; i < 6; i++) pixels(between + i * 96, 16, to + i * 6 * step, step);
}

/** Computes the 36 Winograd values, `step` bytes apart, of 3 × 3 taps that are `tap` bytes apart, for four columns. */
export function transformTaps(from: usize, tap: usize, to: usize, step: usize, between: usize): void {
  for (let j: usize = 0; j < 3; j++) taps(from + j * tap, 3 * tap, between + (j << 4), 48);
  for (let i: usize = 0; i < 6; i++) taps(between + i * 48, 16, to + i * 6 * step, step);
}

/**
 * Computes 4 × 4 results from 36 Winograd products that are `step` bytes apart, for four channels. Only the first
 * `rows` × `across` results are written.
 */
export function transformResults(from: usize, step: usize, to: usize, row: usize, pixel: usize, rows: i32, across: i32, between: usize): void {
  for (let j: usize = 0; j < 6; j++) results(from + j * step, 6 * step, between + (j << 4), 96);
  if (across == 4) {
    for (let i = 0; i < rows; i++) results(between + <usize>i * 96, 16, to + <usize>i * row, pixel);
    return;
  }
  const last = between + 4 * 96;
  for (let i = 0; i < rows; i++) {
    results(between + <usize>i * 96, 16, last, 16);
    for (let j = 0; j < across; j++) v128.store(to + <usize>i * row + <usize>j * pixel, v128.load(last + ((<usize>j) << 4)));
  }
}

/** Computes the 36 Winograd values, `step` bytes apart, of 4 × 4 cotangents, for four channels. */
export function transformCotangents(from: usize, row: usize, pixel: usize, to: usize, step: usize, between: usize): void {
  for (let j: usize = 0; j < 4; j++) cotangents(from + j * pixel, row, between + (j << 4), 64);
  for (let i: usize = 0; i < 6; i++) cotangents(between + i * 64, 16, to + i * 6 * step, step);
}

/**
 * Computes the gradient of 3 × 3 taps, `tap` bytes apart, from 36 Winograd sums that are `step` bytes apart, for four
 * columns.
 */
export function transformKernelGradient(from: usize, step: usize, to: usize, tap: usize, between: usize): void {
  for (let j: usize = 0; j < 6; j++) kernelGradient(from + j * step, 6 * step, between + (j << 4), 96);
  for (let i: usize = 0; i < 3; i++) kernelGradient(between + i * 96, 16, to + i * 3 * tap, tap);
}
