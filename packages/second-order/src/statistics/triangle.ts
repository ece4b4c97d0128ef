import {
  add,
  broadcastTo,
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

/** Slices the last two dimensions. */
const block = (x: Tensor, start: readonly [number, number], end: readonly [number, number]): Tensor => {
  const leading = x.shape.slice(0, -2);
  return slice(x, [...leading.map(() => 0), ...start], [...leading, ...end]);
};

/** Flattens the last two dimensions into a single dimension. */
const flat = (x: Tensor): Tensor => reshape(x, [...x.shape.slice(0, -2), -1]);

/**
 * Packs a symmetric matrix [..., n, n] into its distinct numbers, [..., n(n + 1)/2]. Only the lower triangle is read.
 *
 * The matrix is split into blocks of about half its size. The lower left block is stored completely. The lower triangle
 * of the first diagonal block and the transposed lower triangle of the second diagonal block are stored together as a
 * square. Therefore packing copies whole blocks, and needs no element indices.
 *
 * @throws ShapeError if the matrix is not square.
 * Source: the rectangular full packed format, Gustavson et al. 2010, doi 10.1145/1731022.1731028.
 */
export const packTriangle = (matrix: Tensor): Tensor => {
  const n = matrix.shape.at(-1)!;
  if (matrix.rank < 2 || matrix.shape.at(-2) !== n)
    throw new ShapeError("packTriangle", `${formatShape(matrix.shape)} is not a square matrix; give [..., n, n]`);
  const { first, second } = blocksOf(n);
  if (second === 0) return flat(matrix);
  const low = block(matrix, [first, 0], [n, first]); // [..., second, first]
  const corner = tril(block(matrix, [0, 0], [first, first]));
  const transposed = swapDims(tril(block(matrix, [first, first], [n, n])), -1, -2);
  if (first > second) {
    const beside = matrix.shape.slice(0, -2).map((): [number, number] => [0, 0]);
    const square = add(corner, pad(transposed, [...beside, [0, 1], [1, 0]]));
    return concat([flat(square), flat(low)], { dim: -1 });
  }
  const square = add(corner, triu(transposed, { diagonal: 1 }));
  return concat([flat(square), diagonalOf(transposed), flat(low)], { dim: -1 });
};

/** Returns the full symmetric matrix of a lower triangle. */
export const mirrored = (lower: Tensor): Tensor => add(lower, swapDims(tril(lower, { diagonal: -1 }), -1, -2));

/** Unpacks a symmetric matrix [..., n, n] from the result of `packTriangle`. */
export const unpackTriangle = (packed: Tensor, n: number): Tensor => {
  const count = (n * (n + 1)) / 2;
  if (packed.rank < 1 || packed.shape.at(-1) !== count)
    throw new ShapeError(
      "unpackTriangle",
      `${formatShape(packed.shape)} is not a packed triangle of a matrix [${n}, ${n}], which has ${count} numbers`,
    );
  const leading = packed.shape.slice(0, -1);
  const part = (start: number, end: number, shape: readonly number[]): Tensor =>
    reshape(slice(packed, [...leading.map(() => 0), start], [...leading, end]), [...leading, ...shape]);
  const { first, second } = blocksOf(n);
  if (second === 0) return reshape(packed, [...leading, n, n]);
  const squares = first * first;
  const square = part(0, squares, [first, first]);
  const low = part(count - second * first, count, [second, first]);
  const corner = mirrored(tril(square));
  // Transposed lower triangle of the second diagonal block. If both diagonal blocks have the same size, its diagonal is
  // stored separately.
  const transposed =
    first > second
      ? triu(block(square, [0, 1], [second, first]))
      : where(
          broadcastTo(onDiagonal(second), [...leading, second, second]),
          part(squares, squares + second, [1, second]),
          triu(square),
        );
  const whole = mirrored(swapDims(transposed, -1, -2));
  return concat([concat([corner, swapDims(low, -1, -2)], { dim: -1 }), concat([low, whole], { dim: -1 })], { dim: -2 });
};
