// Thin QR factors by Householder reflections, f32, by blocks of columns. Computes with the transposed matrix, so that a
// column of the matrix is a row in memory.
import { REFLECTOR_BLOCK } from "./decomposition-blocks";
import { addMultiple, dot, fillNaN, INFINITE, largestBits } from "./dot";
import { transposeTile } from "./movement";
import { reflector, reflectRows } from "./reflectors";

/**
 * Computes the thin factors q [n, m], r [m, m] of `batch` matrices [n, m], n ≥ m. The diagonal of r is not negative.
 * Scratch (size computed in `src/ops/qr.ts`): two transposed matrices, m signs, the scratch of `reflectRows`.
 */
export function qr(a: usize, q: usize, r: usize, batch: i32, n: i32, m: i32, scratch: usize): void {
  const rows = <usize>n, columns = <usize>m;
  const stride = rows << 2;
  const work = scratch;
  const turned = work + columns * stride;
  const signs = turned + columns * stride;
  const rest = signs + (columns << 2);
  const aBytes = (rows * columns) << 2, rBytes = (columns * columns) << 2;
  for (let matrix = 0; matrix < batch; matrix++) {
    if (largestBits(a, aBytes) >= INFINITE) {
      fillNaN(q, aBytes);
      fillNaN(r, rBytes);
    } else {
      transposeTile<f32>(work, stride, a, columns << 2, n, m);
      memory.fill(r, 0, rBytes);
      for (let begin = 0; begin < m; begin += REFLECTOR_BLOCK) {
        const end = min(m, begin + REFLECTOR_BLOCK);
        for (let k = <usize>begin; k < <usize>end; k++) {
          const row = work + k * stride;
          const diagonal = <f32>reflector(row + (k << 2), (rows - k) << 2);
          store<f32>(signs + (k << 2), diagonal < 0 ? -1 : 1);
          store<f32>(r + ((k * columns + k) << 2), abs<f32>(diagonal));
          for (let j = k + 1; j < <usize>end; j++) {
            const other = work + j * stride + (k << 2);
            addMultiple(other, row + (k << 2), -dot(row + (k << 2), other, (rows - k) << 2), (rows - k) << 2);
          }
          // Entries before the diagonal are final, so they are copied to r. The rest of the row becomes the vector of
          // the reflection.
          for (let i: usize = 0; i < k; i++) {
            store<f32>(r + ((i * columns + k) << 2), load<f32>(signs + (i << 2)) * load<f32>(row + (i << 2)));
          }
          memory.fill(row, 0, k << 2);
        }
        const corner = <usize>begin * stride + (<usize>begin << 2);
        if (end < m) {
          reflectRows(
            work + <usize>end * stride + (<usize>begin << 2), stride, m - end, work + corner, stride, end - begin, n - begin, false, rest,
          );
        }
      }
      memory.fill(turned, 0, columns * stride);
      for (let i: usize = 0; i < columns; i++) store<f32>(turned + i * stride + (i << 2), load<f32>(signs + (i << 2)));
      for (let begin = ((m - 1) / REFLECTOR_BLOCK) * REFLECTOR_BLOCK; begin >= 0; begin -= REFLECTOR_BLOCK) {
        const corner = <usize>begin * stride + (<usize>begin << 2);
        reflectRows(turned + corner, stride, m - begin, work + corner, stride, min(REFLECTOR_BLOCK, m - begin), n - begin, true, rest);
      }
      transposeTile<f32>(q, columns << 2, turned, stride, m, n);
    }
    a += aBytes;
    q += aBytes;
    r += rBytes;
  }
}
