import {
  add,
  concat,
  pad,
  reshape,
  ShapeError,
  slice,
  swapDims,
  type Tensor,
  tril,
  triu,
  where,
  formatShape,
} from "@skein/tensor-core";
import { diagonalOf, onDiagonal } from "../matrices.ts";

const blocksOf = (n: number): { readonly first: number; readonly second: number } => ({
  first: Math.ceil(n / 2),
  second: Math.floor(n / 2),
});

/**
 * A symmetric matrix [n, n] as the n(n + 1)/2 numbers that it has, [n(n + 1)/2]; only its lower triangle is read.
 *
 * Cut in blocks of about half its size, the square below is whole; the triangle below the diagonal of the first block
 * and that of the second one, turned over, make one more square. So it is copies of blocks alone, no list of positions.
 *
 * @throws ShapeError for what is no square matrix.
 * Source: the rectangular full packed format, Gustavson et al. 2010, doi 10.1145/1731022.1731028.
 */
export const packTriangle = (matrix: Tensor): Tensor => {
  const n = matrix.shape[0]!;
  if (matrix.rank !== 2 || matrix.shape[1] !== n)
    throw new ShapeError("packTriangle", `${formatShape(matrix.shape)} is no square matrix; give [n, n]`);
  const { first, second } = blocksOf(n);
  if (second === 0) return reshape(matrix, [n]);
  const low = slice(matrix, [first, 0], [n, first]); // [second, first]
  const corner = tril(slice(matrix, [0, 0], [first, first]));
  const turned = swapDims(tril(slice(matrix, [first, first], [n, n])), 0, 1);
  if (first > second) {
    const square = add(
      corner,
      pad(turned, [
        [0, 1],
        [1, 0],
      ]),
    );
    return concat([reshape(square, [first * first]), reshape(low, [second * first])]);
  }
  const diagonal = diagonalOf(turned);
  const square = add(corner, triu(turned, { diagonal: 1 }));
  return concat([reshape(square, [first * first]), diagonal, reshape(low, [second * first])]);
};

/** A whole symmetric matrix of its lower triangle. */
const mirrored = (lower: Tensor): Tensor => add(lower, swapDims(tril(lower, { diagonal: -1 }), 0, 1));

/** The symmetric matrix [n, n] that `packTriangle` has packed. */
export const unpackTriangle = (packed: Tensor, n: number): Tensor => {
  if (packed.rank !== 1 || packed.shape[0] !== (n * (n + 1)) / 2)
    throw new ShapeError(
      "unpackTriangle",
      `${formatShape(packed.shape)} is no triangle of a matrix [${n}, ${n}], which has ${(n * (n + 1)) / 2} numbers`,
    );
  const { first, second } = blocksOf(n);
  if (second === 0) return reshape(packed, [n, n]);
  const squares = first * first;
  const square = reshape(slice(packed, [0], [squares]), [first, first]);
  const low = reshape(slice(packed, [packed.shape[0]! - second * first]), [second, first]);
  const corner = mirrored(tril(square));
  // The upper triangle of the second block, turned over; its diagonal stands apart where the blocks are of one size.
  const turned =
    first > second
      ? triu(slice(square, [0, 1], [second, first]))
      : where(onDiagonal(second), reshape(slice(packed, [squares], [squares + second]), [1, second]), triu(square));
  const block = mirrored(swapDims(turned, 0, 1));
  return concat([concat([corner, swapDims(low, 0, 1)], { dim: 1 }), concat([low, block], { dim: 1 })], { dim: 0 });
};
