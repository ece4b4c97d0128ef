// Cholesky factors and triangular solves, f32, row-major, by blocks of rows: what came before enters through one matrix
// product per block ("left-looking"), which is where nearly all flops are; only the diagonal blocks are worked on row
// by row.
import { TRIANGLE_BLOCK } from "./decomposition-blocks";
import { addMultiple, dot } from "./dot";
import { product } from "./gemm";

/**
 * Factor a block of `size` rows, `stride` bytes apart, in place, row by row; zeros above the diagonal. A pivot that is
 * not positive yields NaN.
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

/** x ← x · l⁻ᵀ for one row of a panel; `columns` holds lᵀ with TRIANGLE_BLOCK entries per row. */
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
 * Lower Cholesky factors of `batch` matrices [n, n]; the upper triangle of `a` is not read, that of `y` is zero.
 * Scratch (`src/ops/cholesky.ts` counts it): TRIANGLE_BLOCK rows of n, a transposed block, a matrix product.
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

/**
 * x of op(l) x = b for `batch` triangles [n, n] and right sides [n, m]; op transposes or not. Only the named triangle
 * is read. Scratch (`src/ops/triangular-solve.ts` counts it): TRIANGLE_BLOCK rows of n, a matrix product.
 */
export function triangularSolve(
  l: usize, b: usize, x: usize, batch: i32, n: i32, m: i32, lower: bool, transpose: bool, unitDiagonal: bool, scratch: usize,
): void {
  const rowBytes = <usize>m << 2;
  // Bytes from one entry of op(l) to the next in its column and row.
  const down: usize = transpose ? 4 : <usize>n << 2;
  const along: usize = transpose ? <usize>n << 2 : 4;
  const forward = lower != transpose;
  const rest = scratch + ((<usize>TRIANGLE_BLOCK * <usize>n) << 2);
  for (let matrix = 0; matrix < batch; matrix++) {
    memory.copy(x, b, <usize>n * rowBytes);
    for (let done = 0; done < n; done += TRIANGLE_BLOCK) {
      const size = min(TRIANGLE_BLOCK, n - done);
      const first = forward ? done : n - done - size;
      const rows = x + <usize>first * rowBytes;
      if (done > 0) {
        const solved = <usize>(forward ? 0 : first + size);
        for (let i: usize = 0; i < <usize>size; i++) {
          const from = l + (<usize>first + i) * down + solved * along;
          const to = scratch + ((i * <usize>done) << 2);
          for (let k: usize = 0; k < <usize>done; k++) store<f32>(to + (k << 2), -load<f32>(from + k * along));
        }
        product(scratch, <usize>done << 2, 4, x + solved * rowBytes, 4, rowBytes, rows, rowBytes, size, m, done, false, true, rest);
      }
      for (let step = 0; step < size; step++) {
        const i = <usize>(first + (forward ? step : size - 1 - step));
        const row = x + i * rowBytes;
        for (let before = 0; before < step; before++) {
          const k = <usize>(first + (forward ? before : size - 1 - before));
          addMultiple(row, x + k * rowBytes, -load<f32>(l + i * down + k * along), rowBytes);
        }
        if (unitDiagonal) continue;
        const pivot = load<f32>(l + i * (down + along));
        for (let j: usize = 0; j < rowBytes; j += 4) store<f32>(row + j, load<f32>(row + j) / pivot);
      }
    }
    l += (<usize>n * <usize>n) << 2;
    b += <usize>n * rowBytes;
    x += <usize>n * rowBytes;
  }
}
