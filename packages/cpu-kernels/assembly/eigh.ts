// Eigenvalues and eigenvectors of symmetric matrices, f32. Reflections reduce a matrix to tridiagonal form, then
// implicit QR steps run in f64. The rotations of the QR steps are collected, and applied to a few entries of all
// eigenvectors at a time.
import { REFLECTOR_BLOCK, ROTATION_LANES, ROTATION_LIST } from "./decomposition-blocks";
import { fillNaN, INFINITE, largestBits } from "./dot";
import { maddF, mulF, nmaddF } from "./vectors";
import { reflectRows } from "./reflectors";
import { blockBegin, shiftedStep, tridiagonalize, wilkinsonShift } from "./tridiagonal";

/**
 * Tolerance for off-diagonal entries, as a fraction of the largest entry. Entries up to this tolerance are treated as
 * zero, which changes eigenvalues by less than a hundredth of the f32 rounding error of the largest eigenvalue.
 */
const NEGLIGIBLE: f64 = 1.0 / 4294967296.0;

/** Maximum number of QR steps per row. Usually two steps suffice. */
const MOST_STEPS: i32 = 30;

const LANE_BYTES: usize = (<usize>ROTATION_LANES) << 2;

/**
 * Rotates a panel, which holds ROTATION_LANES entries of every eigenvector, by the QR steps that are stored from
 * address `list` to address `end`, in sequence. A step is stored as its first row and its number of rotations, both
 * i32, followed by its rotations. The second row of a rotation is the first row of the next rotation, so it stays in
 * registers.
 */
function rotatePanel(panel: usize, list: usize, end: usize): void {
  while (list < end) {
    let row = panel + <usize>load<i32>(list) * LANE_BYTES;
    const stop = list + 8 + ((<usize>load<i32>(list, 4)) << 3);
    list += 8;
    if (ASC_FEATURE_SIMD) {
      let x0 = v128.load(row), x1 = v128.load(row, 16), x2 = v128.load(row, 32), x3 = v128.load(row, 48);
      for (; list < stop; list += 8) {
        const c = v128.load32_splat(list), s = v128.load32_splat(list, 4);
        const y0 = v128.load(row, 64), y1 = v128.load(row, 80);
        v128.store(row, maddF<v128>(s, y0, mulF<v128>(c, x0)));
        x0 = nmaddF<v128>(s, x0, mulF<v128>(c, y0));
        v128.store(row, maddF<v128>(s, y1, mulF<v128>(c, x1)), 16);
        x1 = nmaddF<v128>(s, x1, mulF<v128>(c, y1));
        const y2 = v128.load(row, 96), y3 = v128.load(row, 112);
        v128.store(row, maddF<v128>(s, y2, mulF<v128>(c, x2)), 32);
        x2 = nmaddF<v128>(s, x2, mulF<v128>(c, y2));
        v128.store(row, maddF<v128>(s, y3, mulF<v128>(c, x3)), 48);
        x3 = nmaddF<v128>(s, x3, mulF<v128>(c, y3));
        row += LANE_BYTES;
      }
      v128.store(row, x0);
      v128.store(row, x1, 16);
      v128.store(row, x2, 32);
      v128.store(row, x3, 48);
    } else {
      for (; list < stop; list += 8) {
        const c = load<f32>(list), s = load<f32>(list, 4);
        for (let lane: usize = 0; lane < LANE_BYTES; lane += 4) {
          const x = load<f32>(row + lane), y = load<f32>(row + LANE_BYTES + lane);
          store<f32>(row + lane, c * x + s * y);
          store<f32>(row + LANE_BYTES + lane, c * y - s * x);
        }
        row += LANE_BYTES;
      }
    }
  }
}

/**
 * Diagonalizes the tridiagonal matrix with diagonal `d` and off-diagonal `e`. If `numPanels` is not 0, applies the
 * rotations to the panels of eigenvectors; if 0, discards the rotations. `shifts` holds the eigenvalues from an earlier
 * call, in the order in which they are found, or is 0. With known eigenvalues as first shifts, each eigenvalue takes
 * one step instead of 1.7 steps on average.
 *
 * @returns false if the iteration did not converge.
 */
function diagonalize(d: usize, e: usize, n: i32, shifts: usize, panels: usize, numPanels: i32, list: usize): bool {
  let largest: f64 = 0;
  for (let i: usize = 0; i < <usize>n; i++) largest = max(largest, abs<f64>(load<f64>(d + (i << 3))));
  for (let i: usize = 0; i + 1 < <usize>n; i++) largest = max(largest, abs<f64>(load<f64>(e + (i << 3))));
  const least = largest * NEGLIGIBLE;
  const full = list + ((<usize>ROTATION_LIST) << 3);
  let end = list;
  let last = n - 1;
  let fresh = true;
  for (let steps: i64 = 0; last > 0; ) {
    const first = blockBegin(e, last, least);
    if (first == last) {
      last--;
      fresh = true;
      continue;
    }
    if (steps++ == <i64>MOST_STEPS * <i64>n) return false;
    const count = last - first;
    const bytes = 8 + ((<usize>count) << 3);
    if (numPanels == 0) end = list;
    else if (end + bytes > full) {
      for (let p = 0; p < numPanels; p++) rotatePanel(panels + <usize>(p * n) * LANE_BYTES, list, end);
      end = list;
    }
    const known = fresh && shifts != 0;
    fresh = false;
    store<i32>(end, first);
    store<i32>(end, count, 4);
    shiftedStep(d, e, first, last, known ? load<f64>(shifts + (<usize>last << 3)) : wilkinsonShift(d, e, last), end + 8);
    end += bytes;
  }
  for (let p = 0; p < numPanels; p++) rotatePanel(panels + <usize>(p * n) * LANE_BYTES, list, end);
  return true;
}

/** Writes the positions of the numbers `d` in ascending order. The sort is stable. */
function sortPositions(d: usize, n: i32, order: usize): void {
  for (let i: usize = 0; i < <usize>n; i++) {
    const value = load<f64>(d + (i << 3));
    let to = i;
    for (; to > 0; to--) {
      const other = load<i32>(order + (to << 2) - 4);
      if (load<f64>(d + (<usize>other << 3)) <= value) break;
      store<i32>(order + (to << 2), other);
    }
    store<i32>(order + (to << 2), <i32>i);
  }
}

/**
 * Returns the factor that normalizes eigenvector `at` to length 1 and makes its entry of largest magnitude positive
 * (the first such entry if several are equal).
 */
function factorOf(panels: usize, n: i32, at: i32): f32 {
  let sum: f64 = 0;
  let largest: f32 = 0;
  for (let i = 0; i < n; i++) {
    const x = load<f32>(panels + <usize>(i / ROTATION_LANES * n + at) * LANE_BYTES + (<usize>(i % ROTATION_LANES) << 2));
    sum += <f64>x * <f64>x;
    if (abs<f32>(x) > abs<f32>(largest)) largest = x;
  }
  return <f32>((largest < 0 ? -1.0 : 1.0) / sqrt<f64>(sum));
}

/**
 * Copies the lower triangle of the matrix at `from`, times `scale`, to the upper triangle of the matrix at `to`. Rows
 * of the result are `stride` bytes apart.
 */
function fillUpper(from: usize, n: i32, scale: f64, to: usize, stride: usize): void {
  for (let i: usize = 0; i < <usize>n; i++) {
    for (let j: usize = 0; j <= i; j++) {
      store<f32>(to + j * stride + (i << 2), <f32>(<f64>load<f32>(from + ((i * <usize>n + j) << 2)) * scale));
    }
  }
}

/**
 * Returns the scale 2^−k for a largest magnitude in [2^k, 2^(k + 1)), which is given by its bits. After scaling, no
 * significant value overflows or underflows.
 */
function scaleOf(bits: u32): f64 {
  const exponent = <i64>max<u32>(bits >> 23, 1) - 127;
  return reinterpret<f64>((1023 - exponent) << 52);
}

/**
 * Computes ascending eigenvalues [n], and eigenvectors [n, n] as columns, for `batch` matrices [n, n]. Only the lower
 * triangles are read. Scratch (size computed in `src/ops/eigh.ts`): d and e in f64, two matrices with rows of complete
 * panels, a list of rotations, and the larger of two regions: the scratch for `reflectRows` and `tridiagonalize`, and a
 * second copy of d and e.
 */
export function eigh(a: usize, values: usize, vectors: usize, batch: i32, n: i32, scratch: usize): void {
  const size = <usize>n;
  const numPanels = (n + ROTATION_LANES - 1) / ROTATION_LANES;
  const stride = <usize>numPanels * LANE_BYTES;
  const d = scratch;
  const e = d + (size << 3);
  const work = e + (size << 3);
  const turned = work + size * stride;
  const list = turned + size * stride;
  const rest = list + (<usize>max(ROTATION_LIST, n + 1) << 3);
  for (let matrix = 0; matrix < batch; matrix++) {
    let bits: u32 = 0;
    for (let i: usize = 0; i < size; i++) bits = max(bits, largestBits(a + ((i * size) << 2), (i + 1) << 2));
    const scale = scaleOf(bits);
    let converged = false;
    if (bits < INFINITE) {
      fillUpper(a, n, scale, work, stride);
      tridiagonalize(work, stride, n, d, e, rest);
      memory.fill(turned, 0, size * stride);
      for (let i: usize = 0; i < size; i++) store<f32>(turned + i * stride + (i << 2), 1);
      for (let k = (max(n - 3, 0) / REFLECTOR_BLOCK) * REFLECTOR_BLOCK; n > 2 && k >= 0; k -= REFLECTOR_BLOCK) {
        const corner = (<usize>k + 1) * stride + ((<usize>k + 1) << 2);
        const left = n - 1 - k;
        reflectRows(
          turned + corner, stride, left, work + corner - stride, stride, min(REFLECTOR_BLOCK, left - 1), left, true, rest,
        );
      }
      // The reflections have been applied, so their memory is reused for the panels.
      for (let p: usize = 0; p < <usize>numPanels; p++) {
        for (let i: usize = 0; i < size; i++) {
          memory.copy(work + (p * size + i) * LANE_BYTES, turned + i * stride + p * LANE_BYTES, LANE_BYTES);
        }
      }
      // First compute only the eigenvalues, on copies of d and e. With these eigenvalues as shifts, the second pass
      // needs the fewest steps.
      const shifts = rest, eCopy = shifts + (size << 3);
      memory.copy(shifts, d, size << 3);
      memory.copy(eCopy, e, size << 3);
      converged = diagonalize(shifts, eCopy, n, 0, 0, 0, list) && diagonalize(d, e, n, shifts, work, numPanels, list);
    }
    if (converged) {
      const order = list;
      const factors = turned;
      sortPositions(d, n, order);
      for (let i = 0; i < n; i++) {
        const at = load<i32>(order + (<usize>i << 2));
        store<f32>(values + (<usize>i << 2), <f32>(load<f64>(d + (<usize>at << 3)) / scale));
        store<f32>(factors + (<usize>i << 2), factorOf(work, n, at));
      }
      for (let p = 0; p < numPanels; p++) {
        const lanes = <usize>min(ROTATION_LANES, n - p * ROTATION_LANES);
        const to = vectors + ((<usize>(p * ROTATION_LANES) * size) << 2);
        for (let i: usize = 0; i < size; i++) {
          const from = work + <usize>(p * n + load<i32>(order + (i << 2))) * LANE_BYTES;
          const factor = load<f32>(factors + (i << 2));
          for (let lane: usize = 0; lane < lanes; lane++) {
            store<f32>(to + ((lane * size + i) << 2), load<f32>(from + (lane << 2)) * factor);
          }
        }
      }
    } else {
      fillNaN(values, size << 2);
      fillNaN(vectors, (size * size) << 2);
    }
    a += (size * size) << 2;
    values += size << 2;
    vectors += (size * size) << 2;
  }
}
