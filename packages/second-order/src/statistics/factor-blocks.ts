import { matmul, pad, reshape, slice, type Tensor, transpose } from "@skein/tensor-core";
import type { EvenParts } from "../matrices.ts";

// A factor [n, n] with only its diagonal blocks is stored as [blocks, size, size]. If the size does not divide n, the
// last block is padded with rows and columns of zeros.

const padTo = (x: Tensor, dim: 0 | 1, length: number): Tensor => {
  const more = length - x.shape[dim]!;
  if (more === 0) return x;
  return pad(
    x,
    dim === 0
      ? [
          [0, more],
          [0, 0],
        ]
      : [
          [0, 0],
          [0, more],
        ],
  );
};

/** Returns `xᵀx`, [n, n], or the diagonal blocks of `xᵀx`, [blocks, size, size]. @param x [rows, n] */
export const gramInBlocks = (x: Tensor, { count, size }: EvenParts): Tensor => {
  if (count === 1) return matmul(x, x, { transposeA: true });
  const rows = x.shape[0]!;
  const cut = transpose(reshape(padTo(x, 1, count * size), [rows, count, size]), [1, 0, 2]);
  return matmul(cut, cut, { transposeA: true });
};

/**
 * Computes `M x`, or `Mᵀ x`, for a block-diagonal M.
 *
 * @param blocks [n, n] or [blocks, size, size]. @param x [n, m]
 * @returns a matrix that includes the padding rows: see `trim`.
 */
export const timesRows = (blocks: Tensor, x: Tensor, isTransposed = false): Tensor => {
  const options = { transposeA: isTransposed };
  if (blocks.rank === 2) return matmul(blocks, x, options);
  const m = x.shape[1]!;
  const [count, size] = blocks.shape as [number, number];
  const cut = reshape(padTo(x, 0, count * size), [count, size, m]);
  return reshape(matmul(blocks, cut, options), [count * size, m]);
};

/** Computes `x M`, or `x Mᵀ`, for a block-diagonal M. @returns a matrix that includes the padding columns. */
export const timesColumns = (x: Tensor, blocks: Tensor, isTransposed = false): Tensor => {
  const options = { transposeB: isTransposed };
  if (blocks.rank === 2) return matmul(x, blocks, options);
  const n = x.shape[0]!;
  const [count, size] = blocks.shape as [number, number];
  const cut = transpose(reshape(padTo(x, 1, count * size), [n, count, size]), [1, 0, 2]);
  return reshape(transpose(matmul(cut, blocks, options), [1, 0, 2]), [n, count * size]);
};

/** Removes the padding rows and columns of the last blocks. */
export const trim = (x: Tensor, [n, m]: readonly [number, number]): Tensor =>
  x.shape[0] === n && x.shape[1] === m ? x : slice(x, [0, 0], [n, m]);
