// Reduction of symmetric matrices to tridiagonal form, T = Qᵀ A Q, and implicit QR steps on the tridiagonal matrix.
import { dot } from "./dot";
import { madd, sumLanes } from "./lanes";
import { reflector } from "./reflectors";
import { nmaddF } from "./vectors";

/** Computes a ← a − f · w − g · v over `bytes` bytes. */
// @ts-ignore: decorator
@inline
function subtractMultiples(a: usize, w: usize, v: usize, f: f32, g: f32, bytes: usize): void {
  let j: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const wLanes = f32x4.splat(f), vLanes = f32x4.splat(g);
    for (; j + 16 <= bytes; j += 16) {
      v128.store(a + j, nmaddF<v128>(vLanes, v128.load(v + j), nmaddF<v128>(wLanes, v128.load(w + j), v128.load(a + j))));
    }
  }
  for (; j < bytes; j += 4) store<f32>(a + j, load<f32>(a + j) - f * load<f32>(w + j) - g * load<f32>(v + j));
}

/**
 * Updates one entry of the upper triangle as `subtractMultiples` does, then adds the terms of this entry to p = A u:
 * two terms off the diagonal, because A is symmetric.
 */
// @ts-ignore: decorator
@inline
function subtractEntry(a: usize, w: usize, v: usize, u: usize, p: usize, i: usize, j: usize): void {
  const entry = load<f32>(a + j) - load<f32>(v + i) * load<f32>(w + j) - load<f32>(w + i) * load<f32>(v + j);
  store<f32>(a + j, entry);
  store<f32>(p + i, load<f32>(p + i) + entry * load<f32>(u + j));
  if (i != j) store<f32>(p + j, load<f32>(p + j) + entry * load<f32>(u + i));
}

/**
 * Computes A ← A − v wᵀ − w vᵀ, and p ← A u with the updated A, for rows and columns from `begin` to `end` (byte
 * offsets in a row). A is symmetric and stored as its upper triangle. Each entry is read and written once and
 * contributes to two rows of the product. Two rows at a time share the loads of the vectors.
 */
function updateProduct(a: usize, stride: usize, w: usize, v: usize, u: usize, p: usize, begin: usize, end: usize): void {
  memory.fill(p + begin, 0, end - begin);
  let i = begin;
  for (; i + 8 <= end; i += 8) {
    const row = a + (i >> 2) * stride, below = row + stride;
    subtractEntry(row, w, v, u, p, i, i);
    subtractEntry(row, w, v, u, p, i, i + 4);
    subtractEntry(below, w, v, u, p, i + 4, i + 4);
    let j = i + 8;
    if (ASC_FEATURE_SIMD) {
      for (; (j & 15) != 0 && j < end; j += 4) {
        subtractEntry(row, w, v, u, p, i, j);
        subtractEntry(below, w, v, u, p, i + 4, j);
      }
      const v0 = v128.load32_splat(v + i), w0 = v128.load32_splat(w + i), u0 = v128.load32_splat(u + i);
      const v1 = v128.load32_splat(v + i, 4), w1 = v128.load32_splat(w + i, 4), u1 = v128.load32_splat(u + i, 4);
      let sum0 = f32x4.splat(0), sum1 = f32x4.splat(0);
      for (; j + 16 <= end; j += 16) {
        const wLanes = v128.load(w + j), vLanes = v128.load(v + j), uLanes = v128.load(u + j);
        const first = nmaddF<v128>(w0, vLanes, nmaddF<v128>(v0, wLanes, v128.load(row + j)));
        v128.store(row + j, first);
        sum0 = madd(first, uLanes, sum0);
        const second = nmaddF<v128>(w1, vLanes, nmaddF<v128>(v1, wLanes, v128.load(below + j)));
        v128.store(below + j, second);
        sum1 = madd(second, uLanes, sum1);
        v128.store(p + j, madd(second, u1, madd(first, u0, v128.load(p + j))));
      }
      store<f32>(p + i, load<f32>(p + i) + sumLanes(sum0));
      store<f32>(p + i, load<f32>(p + i, 4) + sumLanes(sum1), 4);
    }
    for (; j < end; j += 4) {
      subtractEntry(row, w, v, u, p, i, j);
      subtractEntry(below, w, v, u, p, i + 4, j);
    }
  }
  if (i < end) subtractEntry(a + (i >> 2) * stride, w, v, u, p, i, i);
}

/**
 * Reduces a symmetric matrix, given by its upper triangle, to a diagonal `d` and the off-diagonal entries `e`, both
 * f64. Row k of `a` becomes the vector v of reflection k < n − 2, whose entries 0 … k are zero. Q is the product of the
 * reflections, with the first reflection leftmost.
 *
 * Each step subtracts `v wᵀ + w vᵀ` from the remaining matrix and multiplies the updated matrix by the next v. The
 * update and the product share one pass, because the next v depends only on its own row of the update, which is
 * computed first. Therefore half of the matrix is read and written once per step, whereas the usual order reads it
 * twice.
 *
 * Rows are `stride` bytes apart, a multiple of 16. Scratch: 3 rows. Source: Golub and Van Loan, Matrix Computations,
 * algorithm 8.3.1.
 */
export function tridiagonalize(a: usize, stride: usize, n: i32, d: usize, e: usize, scratch: usize): void {
  const end = <usize>n << 2;
  const v = scratch;
  const w = v + stride;
  const p = w + stride;
  memory.fill(scratch, 0, 3 * stride);
  for (let k: usize = 0; k < <usize>n; k++) {
    const row = a + k * stride;
    const here = k << 2;
    const next = here + 4;
    subtractMultiples(row + here, w + here, v + here, load<f32>(v + here), load<f32>(w + here), end - here);
    store<f64>(d + (k << 3), <f64>load<f32>(row + here));
    if (next + 4 >= end) {
      if (next < end) store<f64>(e + (k << 3), <f64>load<f32>(row + next));
      continue;
    }
    memory.fill(row, 0, next);
    store<f64>(e + (k << 3), reflector(row + next, end - next));
    updateProduct(a, stride, w, v, row, p, next, end);
    memory.copy(v + next, row + next, end - next);
    const half: f32 = dot(p + next, row + next, end - next) * 0.5;
    for (let j = next; j < end; j += 4) store<f32>(w + j, load<f32>(p + j) - half * load<f32>(v + j));
  }
}

/**
 * Returns the first row of the unreduced block that ends with row `last`. The off-diagonal entry before the block is at
 * most `least`, and is set to zero.
 */
export function blockBegin(e: usize, last: i32, least: f64): i32 {
  let first = last;
  for (; first > 0; first--) {
    const at = e + (<usize>(first - 1) << 3);
    if (abs<f64>(load<f64>(at)) <= least) {
      store<f64>(at, 0);
      break;
    }
  }
  return first;
}

/** Returns Wilkinson's shift: the eigenvalue of the last 2 × 2 block that is closer to the last entry of the block. */
export function wilkinsonShift(d: usize, e: usize, last: i32): f64 {
  const at = <usize>last << 3;
  const lower = load<f64>(d + at);
  const beside = load<f64>(e + at - 8);
  const half = (load<f64>(d + at - 8) - lower) * 0.5;
  const root = sqrt<f64>(half * half + beside * beside);
  return lower - (beside * beside) / (half < 0 ? half - root : half + root);
}

/**
 * Computes one implicit QR step on rows `first` to `last` of a tridiagonal matrix.
 *
 * Writes `last − first` rotations (c, s), each a pair of f32, to `list`. Rotation i replaces rows x = first + i and y =
 * first + i + 1 of the transposed eigenvectors with `c x + s y` and `c y − s x`. Source: Golub and Van Loan, Matrix
 * Computations, algorithm 8.3.2.
 */
export function shiftedStep(d: usize, e: usize, first: i32, last: i32, shift: f64, list: usize): void {
  const end = <usize>last << 3;
  let at = <usize>first << 3;
  let x = load<f64>(d + at) - shift;
  let z = load<f64>(e + at);
  for (; at < end; at += 8) {
    const length = sqrt<f64>(x * x + z * z);
    // `x` and `z` are both 0 if the shift is an eigenvalue of the rows processed so far. In this case no rotation is
    // needed.
    const inverse = length > 0 ? 1 / length : 0;
    const c = length > 0 ? x * inverse : 1;
    const s = z * inverse;
    if (at > <usize>first << 3) store<f64>(e + at - 8, length);
    const upper = load<f64>(d + at);
    const diagonal = load<f64>(d + at, 8);
    const off = load<f64>(e + at);
    const difference = diagonal - upper;
    const moved = s * (s * difference + 2 * c * off);
    store<f64>(d + at, upper + moved);
    store<f64>(d + at, diagonal - moved, 8);
    x = c * (s * difference + 2 * c * off) - off;
    store<f64>(e + at, x);
    if (at + 8 < end) {
      const after = load<f64>(e + at, 8);
      z = s * after;
      store<f64>(e + at, c * after, 8);
    }
    store<f32>(list, <f32>c);
    store<f32>(list, <f32>s, 4);
    list += 8;
  }
}
