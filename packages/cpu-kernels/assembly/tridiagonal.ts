// Symmetric matrices to tridiagonal form, T = Qᵀ A Q, and the eigenvalues of that.
import { dot } from "./dot";
import { madd, sumLanes } from "./lanes";
import { reflector } from "./reflectors";
import { nmaddF } from "./vectors";

/** a ← a − f · x − g · y, and a · u of the result, over whole vectors. */
// @ts-ignore: decorator
@inline
function updateRow(a: usize, x: usize, y: usize, u: usize, f: f32, g: f32, begin: usize, end: usize): f32 {
  let sum: f32 = 0;
  if (ASC_FEATURE_SIMD) {
    const ofX = f32x4.splat(f), ofY = f32x4.splat(g);
    let lanes = f32x4.splat(0);
    for (let j = begin; j < end; j += 16) {
      const row = nmaddF<v128>(ofY, v128.load(y + j), nmaddF<v128>(ofX, v128.load(x + j), v128.load(a + j)));
      v128.store(a + j, row);
      lanes = madd(row, v128.load(u + j), lanes);
    }
    sum = sumLanes(lanes);
  } else {
    for (let j = begin; j < end; j += 4) {
      const entry = load<f32>(a + j) - f * load<f32>(x + j) - g * load<f32>(y + j);
      store<f32>(a + j, entry);
      sum += entry * load<f32>(u + j);
    }
  }
  return sum;
}

/**
 * Reduce a symmetric matrix, both triangles filled, to a diagonal `d` and the entries `e` beside it, both f64. Row k of
 * `a` becomes the vector v of reflection k < n − 2, zero up to its entry k; Q is their product, the first one leftmost.
 *
 * Each step takes `v wᵀ + w vᵀ` off what remains and multiplies it with the next v. Both happen in one pass: the next v
 * needs of the update only its own row, which goes ahead. So the matrix is read and written once per step, where the
 * usual order reads it twice.
 *
 * Rows are `stride` bytes apart, a multiple of 16, zero behind the matrix. Scratch: 3 rows.
 * Source: Golub and Van Loan, Matrix Computations, algorithm 8.3.1.
 */
export function tridiagonalise(a: usize, stride: usize, n: i32, d: usize, e: usize, scratch: usize): void {
  const v = scratch;
  const w = v + stride;
  const u = w + stride;
  memory.fill(scratch, 0, 3 * stride);
  for (let k: usize = 0; k < <usize>n; k++) {
    const row = a + k * stride;
    const here = k << 2;
    updateRow(row, w, v, u, load<f32>(v + here), load<f32>(w + here), here & ~15, stride);
    store<f64>(d + (k << 3), <f64>load<f32>(row + here));
    const next = here + 4;
    const left = (<usize>n << 2) - next;
    if (left <= 4) {
      if (left == 4) store<f64>(e + (k << 3), <f64>load<f32>(row + next));
      continue;
    }
    memory.fill(row, 0, next);
    store<f64>(e + (k << 3), reflector(row + next, left));
    for (let i = k + 1; i < <usize>n; i++) {
      const at = i << 2;
      store<f32>(u + at, updateRow(a + i * stride, w, v, row, load<f32>(v + at), load<f32>(w + at), next & ~15, stride));
    }
    memory.copy(v + (next & ~15), row + (next & ~15), stride - (next & ~15));
    const half: f32 = dot(u + next, row + next, left) * 0.5;
    for (let j = next; j < <usize>n << 2; j += 4) store<f32>(w + j, load<f32>(u + j) - half * load<f32>(v + j));
    // What lies before the next row is never read again, but would be multiplied.
    store<f32>(v + here, 0);
    store<f32>(w + here, 0);
  }
}

/**
 * Entries beside the diagonal of so small a part of their neighbours count as zero. It moves eigenvalues by less than a
 * hundredth of an f32 rounding.
 */
const NEGLIGIBLE: f64 = 1.0 / 4294967296.0;

/** First row of the block that ends with row `last`: above it the entry beside the diagonal is negligible. */
export function blockBegin(d: usize, e: usize, last: i32, least: f64): i32 {
  let first = last;
  while (first > 0) {
    const at = <usize>(first - 1) << 3;
    const size = abs<f64>(load<f64>(e + at));
    if (size <= least || size <= NEGLIGIBLE * (abs<f64>(load<f64>(d + at)) + abs<f64>(load<f64>(d + at, 8)))) {
      store<f64>(e + at, 0);
      break;
    }
    first--;
  }
  return first;
}

/**
 * One implicit QR step with Wilkinson's shift on rows `first` to `last` of a tridiagonal matrix.
 *
 * Writes `last − first` pairs of f32 to `list`: rotation i replaces rows x, y = first + i, first + i + 1 of the
 * transposed eigenvectors by `c x + s y` and `c y − s x`.
 * Source: Golub and Van Loan, Matrix Computations, algorithm 8.3.2.
 */
export function shiftedStep(d: usize, e: usize, first: i32, last: i32, list: usize): void {
  const end = <usize>last << 3;
  const lower = load<f64>(d + end);
  const beside = load<f64>(e + end - 8);
  const half = (load<f64>(d + end - 8) - lower) * 0.5;
  const root = sqrt<f64>(half * half + beside * beside);
  const shift = lower - (beside * beside) / (half < 0 ? half - root : half + root);
  let at = <usize>first << 3;
  let x = load<f64>(d + at) - shift;
  let z = load<f64>(e + at);
  for (; at < end; at += 8) {
    const length = sqrt<f64>(x * x + z * z);
    // Both vanish where the shift is an eigenvalue of the rows so far: nothing is left to turn.
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
