// Cholesky factors and triangular solves, f32, row-major, by blocks of rows. Earlier rows contribute through one matrix
// product per block ("left-looking" order), which contains nearly all flops. Only the diagonal blocks are computed row
// by row.
import { TRIANGLE_BLOCK } from "./decomposition-blocks";
import { addMultiple, dot, INFINITE, largestBits } from "./dot";
import { product } from "./gemm";
import { madd } from "./lanes";

/**
 * Factors a block of `size` rows, `stride` bytes apart, in place, row by row. Writes zeros above the diagonal. If a
 * pivot is not positive, the factor is NaN.
 */
function factorBlock(block: usize, stride: usize, size: usize): void {
  for (let i: usize = 0; i < size; i++) {
    const row = block + i * stride;
    for (let j: usize = 0; j < i; j++) {
      const other = block + j * stride;
      const at = row + (j << 2);
      store<f32>(at, (load<f32>(at) - dot(row, other, j << 2)) / load<f32>(other + (j << 2)));
    }
    const pivot = load<f32>(row + (i << 2)) - dot(row, row, i << 2);
    store<f32>(row + (i << 2), pivot > 0 ? sqrt<f32>(pivot) : f32.NaN);
    memory.fill(row + ((i + 1) << 2), 0, (size - 1 - i) << 2);
  }
}

/** Computes x ← x · l⁻ᵀ for one row of a panel. `columns` holds lᵀ with TRIANGLE_BLOCK entries per row. */
// @ts-ignore: decorator
@inline
function solveRow(x: usize, columns: usize, size: usize): void {
  for (let k: usize = 0; k < size; k++) {
    const column = columns + ((k * TRIANGLE_BLOCK + k) << 2);
    const at = x + (k << 2);
    const value = load<f32>(at) / load<f32>(column);
    store<f32>(at, value);
    addMultiple(at + 4, column + 4, -value, (size - 1 - k) << 2);
  }
}

/**
 * Computes the lower Cholesky factors of `batch` matrices [n, n]. The upper triangle of `a` is not read; the upper
 * triangle of `y` is zero. Scratch (size computed in `src/ops/cholesky.ts`): TRIANGLE_BLOCK rows of n elements, a
 * transposed block, the scratch of a matrix product.
 */
export function cholesky(a: usize, y: usize, batch: i32, n: i32, scratch: usize): void {
  const stride = <usize>n << 2;
  const negated = scratch;
  const columns = negated + <usize>TRIANGLE_BLOCK * stride;
  const rest = columns + <usize>(4 * TRIANGLE_BLOCK * TRIANGLE_BLOCK);
  for (let matrix = 0; matrix < batch; matrix++) {
    for (let i: usize = 0; i < <usize>n; i++) {
      memory.copy(y + i * stride, a + i * stride, (i + 1) << 2);
      memory.fill(y + i * stride + ((i + 1) << 2), 0, (<usize>n - 1 - i) << 2);
    }
    for (let j0 = 0; j0 < n; j0 += TRIANGLE_BLOCK) {
      const size = <usize>min(TRIANGLE_BLOCK, n - j0);
      const rows = y + <usize>j0 * stride;
      const block = rows + (<usize>j0 << 2);
      if (j0 > 0) {
        const bytes = <usize>j0 << 2;
        for (let i: usize = 0; i < size; i++) {
          for (let k: usize = 0; k < bytes; k += 4) store<f32>(negated + i * bytes + k, -load<f32>(rows + i * stride + k));
        }
        product(rows, stride, 4, negated, bytes, 4, block, stride, n - j0, <i32>size, j0, false, true, rest);
      }
      factorBlock(block, stride, size);
      for (let i: usize = 0; i < size; i++) {
        for (let k: usize = 0; k <= i; k++) {
          store<f32>(columns + ((k * TRIANGLE_BLOCK + i) << 2), load<f32>(block + i * stride + (k << 2)));
        }
      }
      for (let i = <usize>j0 + size; i < <usize>n; i++) solveRow(y + i * stride + (<usize>j0 << 2), columns, size);
    }
    a += <usize>n * stride;
    y += <usize>n * stride;
  }
}

/** Computes y −= Σ l[t] · x[t] for rows x[t] of `bytes` bytes. Four rows at a time share the loads and stores of y. */
function subtractRows(y: usize, x: usize, xStep: usize, l: usize, lStep: usize, count: i32, bytes: usize): void {
  let t = 0;
  if (ASC_FEATURE_SIMD) {
    for (; t + 4 <= count; t += 4) {
      const f0 = f32x4.neg(v128.load32_splat(l)), f1 = f32x4.neg(v128.load32_splat(l + lStep));
      const f2 = f32x4.neg(v128.load32_splat(l + 2 * lStep)), f3 = f32x4.neg(v128.load32_splat(l + 3 * lStep));
      const x1 = x + xStep, x2 = x1 + xStep, x3 = x2 + xStep;
      let j: usize = 0;
      for (; j + 16 <= bytes; j += 16) {
        const pair = madd(f1, v128.load(x1 + j), madd(f0, v128.load(x + j), v128.load(y + j)));
        v128.store(y + j, madd(f3, v128.load(x3 + j), madd(f2, v128.load(x2 + j), pair)));
      }
      for (; j < bytes; j += 4) {
        const pair = load<f32>(y + j) - load<f32>(l) * load<f32>(x + j) - load<f32>(l + lStep) * load<f32>(x1 + j);
        store<f32>(y + j, pair - load<f32>(l + 2 * lStep) * load<f32>(x2 + j) - load<f32>(l + 3 * lStep) * load<f32>(x3 + j));
      }
      x = x3 + xStep;
      l += 4 * lStep;
    }
  }
  for (; t < count; t++) {
    addMultiple(y, x, -load<f32>(l), bytes);
    x += xStep;
    l += lStep;
  }
}

// @ts-ignore: decorator
@inline
function divideRow(row: usize, by: f32, bytes: usize): void {
  let j: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const lanes = f32x4.splat(by);
    for (; j + 16 <= bytes; j += 16) v128.store(row + j, f32x4.div(v128.load(row + j), lanes));
  }
  for (; j < bytes; j += 4) store<f32>(row + j, load<f32>(row + j) / by);
}

/**
 * Whether zeros of the right-hand side stay zero in the solution. Zeros stay zero if all entries of the selected
 * triangle are finite and no pivot is zero.
 */
function keepsZeros(l: usize, n: usize, lower: bool, unitDiagonal: bool): bool {
  for (let i: usize = 0; i < n; i++) {
    const pivot = l + ((i * n + i) << 2);
    const begin = lower ? l + ((i * n) << 2) : pivot + 4;
    if (largestBits(begin, lower ? i << 2 : (n - 1 - i) << 2) >= INFINITE) return false;
    if (!unitDiagonal && (load<f32>(pivot) == 0 || (load<u32>(pivot) & 0x7fffffff) >= INFINITE)) return false;
  }
  return true;
}

/**
 * Returns the number of leading blocks of `x`, in solution order, whose rows are zero in their first `bytes` bytes.
 * Only complete blocks count.
 */
function zeroBlocks(x: usize, rowBytes: usize, n: usize, forward: bool, bytes: usize): i32 {
  for (let step: usize = 0; step < n; step++) {
    if (largestBits(x + (forward ? step : n - 1 - step) * rowBytes, bytes) != 0) return <i32>(step / TRIANGLE_BLOCK);
  }
  return <i32>(n / TRIANGLE_BLOCK);
}

/**
 * Solves op(l) x = b for `batch` triangular matrices [n, n] and right-hand sides [n, m]; op transposes `l` if
 * `transpose` is true. Only the selected triangle of `l` is read. If columns of the right-hand side begin with zeros,
 * as in an inverse, their solution starts at the first block with nonzero entries: if b is the identity, a third of the
 * work remains. Scratch (size computed in `src/ops/triangular-solve.ts`): TRIANGLE_BLOCK rows of n elements, the
 * scratch of a matrix product.
 */
export function triangularSolve(
  l: usize, b: usize, x: usize, batch: i32, n: i32, m: i32, lower: bool, transpose: bool, unitDiagonal: bool, scratch: usize,
): void {
  const rowBytes = <usize>m << 2;
  const forward = lower != transpose;
  const panel = <usize>TRIANGLE_BLOCK << 2;
  for (let matrix = 0; matrix < batch; matrix++) {
    memory.copy(x, b, <usize>n * rowBytes);
    const skipping = n > TRIANGLE_BLOCK && keepsZeros(l, n, lower, unitDiagonal);
    for (let begin: usize = 0; begin < rowBytes; ) {
      let end = rowBytes;
      let zeros = 0;
      if (skipping) {
        end = min(rowBytes, begin + panel);
        zeros = zeroBlocks(x + begin, rowBytes, n, forward, end - begin);
        while (end < rowBytes) {
          const next = min(rowBytes, end + panel);
          if (zeroBlocks(x + end, rowBytes, n, forward, next - end) != zeros) break;
          end = next;
        }
      }
      solveColumns(l, x + begin, rowBytes, n, <i32>((end - begin) >> 2), zeros * TRIANGLE_BLOCK, transpose, forward, unitDiagonal, scratch);
      begin = end;
    }
    l += (<usize>n * <usize>n) << 2;
    b += <usize>n * rowBytes;
    x += <usize>n * rowBytes;
  }
}

/**
 * Solves the triangular system for `m` right-hand sides in place. The first `zeros` rows of `x`, in solution order, are
 * zero.
 */
function solveColumns(
  l: usize, x: usize, rowBytes: usize, n: i32, m: i32, zeros: i32, transpose: bool, forward: bool, unitDiagonal: bool, scratch: usize,
): void {
  const bytes = <usize>m << 2;
  // Bytes between consecutive entries of op(l) in a column.
  const down: usize = transpose ? 4 : <usize>n << 2;
  const along: usize = transpose ? <usize>n << 2 : 4;
  const rest = scratch + ((<usize>TRIANGLE_BLOCK * <usize>n) << 2);
  for (let done = zeros; done < n; done += TRIANGLE_BLOCK) {
    const size = min(TRIANGLE_BLOCK, n - done);
    const first = forward ? done : n - done - size;
    const rows = x + <usize>first * rowBytes;
    const terms = done - zeros;
    if (terms > 0) {
      const solved = <usize>(forward ? zeros : first + size);
      for (let i: usize = 0; i < <usize>size; i++) {
        const from = l + (<usize>first + i) * down + solved * along;
        const to = scratch + ((i * <usize>terms) << 2);
        for (let k: usize = 0; k < <usize>terms; k++) store<f32>(to + (k << 2), -load<f32>(from + k * along));
      }
      product(scratch, <usize>terms << 2, 4, x + solved * rowBytes, 4, rowBytes, rows, rowBytes, size, m, terms, false, true, rest);
    }
    for (let step = 0; step < size; step++) {
      const i = <usize>(first + (forward ? step : size - 1 - step));
      const row = x + i * rowBytes;
      const begin = <usize>(forward ? first : first + size - 1);
      subtractRows(
        row, x + begin * rowBytes, forward ? rowBytes : 0 - rowBytes, l + i * down + begin * along, forward ? along : 0 - along, step, bytes,
      );
      if (unitDiagonal) continue;
      divideRow(row, load<f32>(l + i * (down + along)), bytes);
    }
  }
}
