// Householder reflections H = 1 − v vᵀ with |v|² = 2, f32. The product of several reflections is 1 − V T Vᵀ with a
// small triangle T, so that nearly all flops are in matrix products.
//
// Source: Schreiber and Van Loan 1989, "A storage-efficient WY representation".
import { REFLECTOR_BLOCK } from "./decomposition-blocks";
import { dot } from "./dot";
import { product } from "./gemm";

/**
 * Replaces the vector x by the vector v of the reflection that sets all entries of x except the first to zero.
 *
 * @returns the first entry of x after the reflection. Its magnitude is the length of x, and its sign is opposite to the
 * sign of x[0], so that there is no cancellation. If all other entries are already zero, v is zero and x[0] is
 * unchanged. Lengths are summed in f64, in which squares neither overflow nor underflow.
 */
export function reflector(x: usize, bytes: usize): f64 {
  let rest: f64 = 0;
  for (let i: usize = 4; i < bytes; i += 4) {
    const value = <f64>load<f32>(x + i);
    rest += value * value;
  }
  const first = <f64>load<f32>(x);
  if (rest == 0) {
    store<f32>(x, 0);
    return first;
  }
  const length = sqrt<f64>(rest + first * first);
  const scale = 1 / sqrt<f64>(length * (length + abs<f64>(first)));
  store<f32>(x, <f32>((first < 0 ? first - length : first + length) * scale));
  for (let i: usize = 4; i < bytes; i += 4) store<f32>(x + i, <f32>(<f64>load<f32>(x + i) * scale));
  return first < 0 ? length : -length;
}

/**
 * Writes −T of `count` reflections, which are applied in order from the last column to the first: H₀ H₁ … = 1 − V T Vᵀ.
 * Vectors are rows of `v`, `stride` bytes apart. T is upper triangular, with REFLECTOR_BLOCK floats per row.
 */
function negatedTriangle(v: usize, stride: usize, count: i32, bytes: usize, t: usize): void {
  const row = <usize>REFLECTOR_BLOCK << 2;
  for (let j: usize = 0; j < <usize>count; j++) {
    const own = v + j * stride;
    const column = t + (j << 2);
    for (let i: usize = 0; i < j; i++) {
      store<f32>(column + i * row, dot(v + i * stride, own, bytes));
      store<f32>(t + j * row + (i << 2), 0);
    }
    store<f32>(column + j * row, -1);
    // Computes column[0..j) ← (−T)[0..j, 0..j) · column[0..j) from the top, because each entry depends only on entries
    // below.
    for (let i: usize = 0; i < j; i++) {
      let sum: f32 = 0;
      for (let k = i; k < j; k++) sum += load<f32>(t + i * row + (k << 2)) * load<f32>(column + k * row);
      store<f32>(column + i * row, -sum);
    }
  }
}

/**
 * Computes z ← z (1 − V T Vᵀ) for `rows` rows of `z`, with Tᵀ instead of T if `transposed`. The rows of `v` are `count`
 * reflections of `length` entries. Scratch: T, two times `rows` × REFLECTOR_BLOCK floats, the scratch of a matrix
 * product.
 */
export function reflectRows(
  z: usize, zStride: usize, rows: i32, v: usize, vStride: usize, count: i32, length: i32, transposed: bool, scratch: usize,
): void {
  const row = <usize>REFLECTOR_BLOCK << 2;
  const onto = scratch + <usize>REFLECTOR_BLOCK * row;
  const factors = onto + <usize>rows * row;
  const rest = factors + <usize>rows * row;
  negatedTriangle(v, vStride, count, <usize>length << 2, scratch);
  product(z, zStride, 4, v, vStride, 4, onto, row, rows, count, length, false, false, rest);
  product(onto, row, 4, scratch, transposed ? row : 4, transposed ? 4 : row, factors, row, rows, count, count, false, false, rest);
  product(factors, row, 4, v, 4, vStride, z, zStride, rows, length, count, false, true, rest);
}
